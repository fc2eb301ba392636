%% W8: processes that ran once and wait; their memory, their start, and what a message takes each.
%% W10: how long one that waits takes to run.
%% W11: the processor time that they take.
-module(idle).
-export([memory/1, wake_latency/1, cpu/1, for/2, crowd/1, wake/1]).
-export([wait/0, listen/1]).

memory(Job) ->
    N = measure:elements_or_processes(Job),
    %% Less than elsewhere: what it leaves to the allocator does not grow the measured run.
    {_, Few} = crowd(max(N div 100, 1)),
    wake(Few),
    Before = machine:resident(),
    {Spawn, All} = crowd(N),
    After = machine:resident(),
    Wake = wake(All),
    [
        #{variant => "rss", unit => "bytes", n => N, value => max(After - Before, 0) / N},
        #{variant => "spawn", unit => "ns", n => N, value => Spawn / N},
        #{variant => "wake", unit => "ns", n => N, value => Wake / N}
    ].

wake_latency(Job) ->
    Samples = measure:elements(Job),
    WarmUp = Samples div 20,
    Sleeper = spawn(?MODULE, listen, [self()]),
    [one(Sleeper) || _ <- lists:seq(1, WarmUp)],
    Before = machine:switches(),
    Times = [one(Sleeper) || _ <- lists:seq(1, Samples)],
    Switches = max(machine:switches() - Before, 0),
    Sleeper ! stop,
    #{p99 := P99} = P50 = latency:sample("p50", "us", 1000, Times),
    [
        P50,
        #{variant => "p99", unit => "us", n => Samples, value => P99},
        #{variant => "switches", unit => "a sample", n => Samples, value => Switches / Samples}
    ].

one(Sleeper) ->
    timer:sleep(1),
    Sleeper ! measure:nanos(),
    receive
        {took, Took} -> Took
    end.

listen(Main) ->
    receive
        stop ->
            ok;
        Sent ->
            Main ! {took, measure:nanos() - Sent},
            listen(Main)
    end.

cpu(Job) ->
    {_, Crowd} = crowd(measure:processes(Job, 1000)),
    Millis = measure:elements(Job),
    Samples = for(Millis, Millis),
    wake(Crowd),
    Samples.

%% The processor time, and the switches, of what has nothing to do for so long.
for(Millis, N) ->
    %% What has been started has nothing left to do by then.
    timer:sleep(100),
    Slept = machine:switches(),
    %% Reading takes processor time itself, which the third reading shows.
    First = machine:processor_time(),
    Begin = measure:nanos(),
    Before = machine:processor_time(),
    timer:sleep(Millis),
    Took = measure:nanos() - Begin,
    After = machine:processor_time(),
    Switches = max(machine:switches() - Slept, 0),
    Used = max((After - Before) - (Before - First), 0),
    [
        #{variant => "cpu", unit => "ms/s", n => N, value => Used / Took * 1000},
        #{variant => "switches", unit => "a second", n => N, value => Switches * 1000000000 / Took}
    ].

%% Starts processes. Each hits the gate, and waits.
crowd(Processes) ->
    gate:start(Processes, 0, fun() -> start(Processes, []) end).

start(0, Crowd) -> Crowd;
start(Left, Crowd) -> start(Left - 1, [spawn(?MODULE, wait, []) | Crowd]).

wait() ->
    gate:hit(),
    receive
        Number -> gate:hit_with(Number)
    end.

%% Sends each a message, upon which it ends.
wake(Crowd) ->
    gate:time(length(Crowd), length(Crowd), fun() -> [Process ! 1 || Process <- Crowd] end).
