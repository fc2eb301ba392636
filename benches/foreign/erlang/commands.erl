%% W9: a process has commands carried out in sequence; another process, set up, answers.
-module(commands).
-export([ask/1]).
-export([serve/0, run/3]).

ask(Commands) ->
    Server = spawn(?MODULE, serve, []),
    Took = gate:time(1, Commands * (Commands + 1) div 2, fun() ->
        spawn(?MODULE, run, [Server, Commands, 0])
    end),
    Server ! stop,
    Took.

serve() ->
    receive
        {Asker, Tag, Number} ->
            Asker ! {Tag, Number},
            serve();
        stop ->
            ok
    end.

%% Each has a tag of its own: an answer that comes late must not be taken for another.
run(_, 0, Sum) ->
    gate:hit_with(Sum);
run(Server, Left, Sum) ->
    Tag = make_ref(),
    Server ! {self(), Tag, Left},
    receive
        {Tag, Answer} -> run(Server, Left - 1, Sum + Answer)
    end.
