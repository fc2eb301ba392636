%% W14: a process sets timers and cancels them.
%% W15: timers that all fire.
%% W16: how late processes are that sleep.
%% W17: timers that wait.
-module(timers).
-export([churn/2, fire/2, lateness/1, idle/1]).
-export([rounds/2, wait/1, nap/2]).

-define(HOUR_MS, 3600000).

%% `Between` is called after a timer is set, and before it is cancelled.
churn(Job, Between) ->
    N = measure:elements(Job),
    Measure = fun() ->
        churns(max(N div 20, 1), Between),
        churns(N, Between)
    end,
    Alone = Measure(),
    {_, Others} = crowd(measure:processes(Job, N), ?HOUR_MS, ?HOUR_MS),
    Crowded = Measure(),
    wake(Others),
    [
        #{variant => "alone", unit => "ns", n => N, value => Alone / N},
        #{variant => "crowded", unit => "ns", n => N, value => Crowded / N}
    ].

churns(Rounds, Between) ->
    gate:time(1, Rounds, fun() -> spawn(?MODULE, rounds, [Rounds, Between]) end).

%% Brings to the gate how many timers it has cancelled.
rounds(Rounds, Between) ->
    gate:hit_with(rounds(Rounds, Between, 0)).

rounds(0, _, Cancelled) ->
    Cancelled;
rounds(Left, Between, Cancelled) ->
    Timer = erlang:send_after(1000 + scattered(Left, 59000), self(), late),
    Between(),
    case erlang:cancel_timer(Timer) of
        false -> rounds(Left - 1, Between, Cancelled);
        _ -> rounds(Left - 1, Between, Cancelled + 1)
    end.

%% The processor time of timers that are due within so many seconds, insertion apart.
fire(Job, Seconds) ->
    N = measure:elements_or_processes(Job),
    %% So long it may take to set them. Before the first is due, all of them are set.
    {Lead, Span} =
        case Job of
            #{size := full} -> {8000, Seconds * 1000};
            #{size := quick} -> {4000, Seconds * 100}
        end,
    First = measure:nanos() + Lead * 1000000,
    crowd(N, Lead, Span),
    Left = (First - measure:nanos()) div 1000000,
    Left > 0 orelse throw({failed, "timers were due before all were set"}),
    %% It is woken among all others: so it wakes earlier. Until they do, they take nothing.
    {_, Before} = gate:start(N, 0, fun() ->
        timer:sleep(max(Left - 1000, 0)),
        machine:processor_time()
    end),
    Used = machine:processor_time() - Before,
    [#{variant => "cpu", unit => "ns", n => N, value => Used / N}].

%% How late processes are that sleep 1 to 20 ms, again and again.
lateness(Job) ->
    N = measure:elements(Job),
    Processes = measure:processes(Job, 1000),
    Sleepers = [spawn(?MODULE, nap, [self(), Number bsl 32]) || Number <- lists:seq(1, Processes)],
    timer:sleep(N),
    [Sleeper ! stop || Sleeper <- Sleepers],
    Times = lists:append([collect() || _ <- Sleepers]),
    lists:min(Times) >= 0 orelse throw({failed, "a timer is too early"}),
    #{p50 := P50, max := Max} = Sample = latency:sample("p99", "us", 1000, Times),
    #{p99 := P99} = Sample,
    [
        #{variant => "p50", unit => "us", n => N, value => P50},
        Sample#{n => N, value => P99},
        #{variant => "max", unit => "us", n => N, value => Max}
    ].

collect() ->
    receive
        {late, Times} -> Times
    end.

nap(Main, Number) ->
    Main ! {late, nap(Number, [], measure:nanos())}.

%% It does not wait for messages while it sleeps: a message would wake it.
nap(Number, Late, Now) ->
    receive
        stop -> Late
    after 0 ->
        Millis = 1 + scattered(Number, 19),
        receive
        after Millis -> ok
        end,
        Woken = measure:nanos(),
        nap(Number + 1, [Woken - Now - Millis * 1000000 | Late], Woken)
    end.

%% Timers that wait for an hour: their memory, and what they take.
idle(Job) ->
    N = measure:elements_or_processes(Job),
    {_, Few} = crowd(max(N div 100, 1), ?HOUR_MS, ?HOUR_MS),
    wake(Few),
    Begin = machine:resident(),
    {_, Without} = idle:crowd(N),
    Between = machine:resident(),
    {_, With} = crowd(N, ?HOUR_MS, ?HOUR_MS),
    More = (machine:resident() - Between) - (Between - Begin),
    Pause =
        case Job of
            #{size := full} -> 5000;
            #{size := quick} -> 500
        end,
    Idle = idle:for(Pause, N),
    wake(With),
    idle:wake(Without),
    [#{variant => "rss", unit => "bytes", n => N, value => max(More, 0) / N} | Idle].

%% Starts processes. Each hits the gate, and waits for a message, or until its time is over: they are
%% due from `Lead` on, within `Span` milliseconds.
crowd(Processes, Lead, Span) ->
    First = measure:nanos() div 1000000 + Lead,
    gate:start(Processes, 0, fun() -> start(Processes, First, Span, []) end).

start(0, _, _, Crowd) ->
    Crowd;
start(Left, First, Span, Crowd) ->
    Process = spawn(?MODULE, wait, [First + scattered(Left, Span)]),
    start(Left - 1, First, Span, [Process | Crowd]).

wait(Due) ->
    Left = max(Due - measure:nanos() div 1000000, 0),
    gate:hit(),
    receive
        _ -> ok
    after Left -> ok
    end,
    gate:hit().

%% Sends each a message, upon which it ends.
wake(Crowd) ->
    gate:time(length(Crowd), 0, fun() -> [Process ! 1 || Process <- Crowd] end).

%% Evenly below that number, in no order.
scattered(Number, Below) ->
    (Number * 16#9e3779b97f4a7c15 band 16#ffffffffffffffff) rem Below.
