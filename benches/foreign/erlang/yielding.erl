%% W3: processes continue that often each. They bring along how often they have.
-module(yielding).
-export([run/2]).
-export([continue/2]).

run(Processes, Each) ->
    gate:time(Processes, Processes * Each, fun() ->
        [spawn(?MODULE, continue, [Each, 0]) || _ <- lists:seq(1, Processes)]
    end).

continue(0, Steps) ->
    gate:hit_with(Steps);
continue(Left, Steps) ->
    erlang:yield(),
    continue(Left - 1, Steps + 1).
