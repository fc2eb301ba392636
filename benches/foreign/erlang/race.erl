%% W13: processes work for a microsecond and continue: most steps over fewest.
-module(race).
-export([run/1]).
-export([racer/2]).

-define(WARM_UP, 20).
-define(LAP_NANOS, 1000).

run(Job) ->
    Millis = measure:elements(Job),
    Processes = measure:processes(Job, 100),
    race(Processes, Millis div ?WARM_UP),
    Laps = race(Processes, Millis),
    case lists:min(Laps) of
        0 ->
            throw({failed, "a process has not run at all"});
        Fewest ->
            Ratio = lists:max(Laps) / Fewest,
            [#{variant => "ratio", unit => "x", n => Millis, value => Ratio}]
    end.

%% How many laps each process runs in that time.
race(Processes, Millis) ->
    Over = atomics:new(1, []),
    Racers = [spawn_link(?MODULE, racer, [self(), Over]) || _ <- lists:seq(1, Processes)],
    timer:sleep(Millis),
    atomics:put(Over, 1, 1),
    [
        receive
            {laps, Racer, Laps} -> Laps
        end
     || Racer <- Racers
    ].

racer(Main, Over) ->
    Main ! {laps, self(), laps(Over, 0)}.

laps(Over, Laps) ->
    case atomics:get(Over, 1) of
        0 ->
            work(measure:nanos() + ?LAP_NANOS),
            erlang:yield(),
            laps(Over, Laps + 1);
        1 ->
            Laps
    end.

work(Until) ->
    case measure:nanos() < Until of
        true -> work(Until);
        false -> ok
    end.
