%% What a job is: how often what is done, a small run of the same first, and which workload is
%% where.
-module(measure).
-export([ids/0, run/1, elements/1, elements_or_processes/1, processes/2, nanos/0]).

%% Warm-up does this part of the work.
-define(WARM_UP, 20).

%% The full and the quick size, and what runs it; in the order of the catalog of the program that
%% starts this one, with the same sizes.
catalog() ->
    [
        {"W1", 1000000, 50000, fun external/1},
        {"W2", 1111111, 11111, fun spawning:skynet/1},
        {"W3a", 1000000, 50000, in_parts(1, fun yielding:run/2)},
        {"W3b", 1000000, 50000, in_processes(100, fun yielding:run/2)},
        {"W4", 1000000, 20000, in_parts(1, fun pair:run/2)},
        {"W4b", 1000000, 50000, in_processes(1000, fun pair:run/2)},
        {"W4pid", 1000000, 20000, in_parts(1, fun pair:run/2)},
        {"W4t", 1000000, 20000, {missing, "it is not measured with an enum of 40 bytes"}},
        {"W5", 1000000, 50000, fun(Job) -> in_ring(Job, 1) end},
        {"W5b", 1000000, 50000, fun(Job) -> in_ring(Job, 100) end},
        {"W5bt", 1000000, 50000, {missing, "it is not measured with an enum of 40 bytes"}},
        {"W6", 1000000, 50000, fun fan_in/1},
        {"W6all", 1000000, 50000, {missing, "a process is sent one message at a time"}},
        {"W6t", 1000000, 50000, {missing, "it is not measured with an enum of 40 bytes"}},
        {"W7", 1000000, 50000, in_processes(1000, fun fan:out/2)},
        {"W7t", 1000000, 50000, {missing, "it is not measured with an enum of 40 bytes"}},
        {"W8", 1000000, 20000, fun idle:memory/1},
        {"W9", 1000000, 50000, {missing, "requests go to another process, as in W9ask"}},
        {"W9ask", 1000000, 50000, fun command_ask/1},
        {"W10", 2000, 200, fun idle:wake_latency/1},
        {"W10spin", 2000, 200, {missing, "it is measured beside tokio alone"}},
        {"W10busy", 2000, 200, {missing, "it is measured beside tokio alone"}},
        {"W10busyspin", 2000, 200, {missing, "it is measured beside tokio alone"}},
        {"W11", 5000, 500, fun idle:cpu/1},
        {"W12", 5000, 1000, {missing, "no process can block its thread: all are preempted"}},
        {"W12cpu", 5000, 1000, {missing, "no process can block its thread: all are preempted"}},
        {"W13", 3000, 500, fun race:run/1},
        {"W13b", 30, 4, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W13b10", 30, 4, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W13c", 300, 40, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W13c10", 300, 40, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W14", 1000000, 50000, fun(Job) -> timers:churn(Job, fun() -> ok end) end},
        {"W14step", 1000000, 50000, fun(Job) -> timers:churn(Job, fun erlang:yield/0) end},
        {"W15", 1000000, 20000, fun(Job) -> timers:fire(Job, 1) end},
        {"W15min", 1000000, 20000, fun(Job) -> timers:fire(Job, 60) end},
        {"W16", 10000, 1000, fun timers:lateness/1},
        {"W16b", 10000, 1000, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W16b10", 10000, 1000, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W16stuck", 10000, 1000, {missing, "no process can keep its thread for a step: all are preempted"}},
        {"W17", 1000000, 20000, fun timers:idle/1},
        {"A1", 1000000, 50000, {missing, "processes run it as W1"}},
        {"A2a", 1000000, 50000, {missing, "processes run it as W3a"}},
        {"A2b", 1000000, 50000, {missing, "processes run it as W3b"}},
        {"A3", 1000000, 20000, {missing, "processes run it as W4"}},
        {"A4", 1000000, 50000, {missing, "processes run it as W4b"}},
        {"A5", 1000000, 50000, {missing, "processes run it as W5b"}},
        {"A6", 1000000, 50000, {missing, "processes run it as W6"}},
        {"A7", 1000000, 20000, {missing, "processes run it as W8"}},
        {"A8", 1000000, 50000, {missing, "processes run it as W9ask"}},
        {"S1", 1000000, 50000, fun command_ask/1},
        {"S1out", 100000, 5000, {missing, "each process is inside"}},
        {"S2", 1000000, 50000, in_parts(1, fun(_, Processes) -> spawning:monitored(Processes) end)},
        {"S3", 500000, 20000, in_parts(1, fun(_, Restarts) -> restarting:time(Restarts) end)},
        {"S3in", 500000, 20000, {missing, "a process that has failed is gone"}},
        {"S4", 1000000, 50000, in_processes(1000, fun fan:broadcast/2)},
        {"S4each", 1000000, 50000, {missing, "processes run it as S4"}},
        {"S5", 1000000, 50000, {missing, "it is not measured with jobs"}},
        {"S5us", 1000000, 50000, {missing, "it is not measured with jobs"}},
        {"Q2", 800000, 40000, {missing, "it compares Ganger's limited mailboxes with its others"}},
        {"X1", 10000, 500, fun cluster:round_trip/1},
        {"X2", 1000000, 20000, fun(Job) -> cluster:stream(Job, 1, 64) end},
        {"X3", 200000, 5000, fun(Job) -> cluster:stream(Job, 1, 1024) end},
        {"X4", 1000000, 20000, fun(Job) -> cluster:stream(Job, 100, 64) end},
        {"X8", 100000, 2000, fun cluster:monitors/1},
        {"X9", 1, 1, fun cluster:crash/1}
    ].

%% Those that it runs.
ids() ->
    [Id || {Id, _, _, Run} <- catalog(), is_function(Run)].

%% The samples of a job.
run(#{id := Name} = Job) ->
    Found = [Entry || {Id, _, _, _} = Entry <- catalog(), string:equal(Id, Name, true)],
    case Found of
        [{_, _, _, {missing, Why}}] ->
            throw({missing, Why});
        [{Id, Full, Quick, Run}] ->
            Run(Job#{id := Id, full => Full, quick => Quick});
        [] ->
            Known = lists:join(", ", [Id || {Id, _, _, _} <- catalog()]),
            throw({failed, ["there is no workload `", Name, "`; there are ", Known]})
    end.

%% How many elements there are.
elements(#{rounds := N}) -> N;
elements(#{size := full, full := N}) -> N;
elements(#{size := quick, quick := N}) -> N.

%% The same for a workload whose elements are processes.
elements_or_processes(Job) ->
    maps:get(rounds, Job, maps:get(processes, Job, elements(Job))).

processes(Job, Default) ->
    maps:get(processes, Job, Default).

%% Now, in nanoseconds.
nanos() ->
    erlang:monotonic_time(nanosecond).

%% Measures elements in that many equal parts: `Do` takes how many parts there are and one part's
%% count, and returns the time that all of them took.
parts(Job, Parts, Do) ->
    each(elements(Job), Parts, fun(Each) -> Do(Parts, Each) end).

each(Elements, Parts, Do) ->
    Do(max(Elements div ?WARM_UP div Parts, 1)),
    Each = max(Elements div Parts, 1),
    Took = Do(Each),
    N = Each * Parts,
    [#{variant => "time", unit => "ns", n => N, value => Took / N}].

in_parts(Parts, Do) ->
    fun(Job) -> parts(Job, Parts, Do) end.

in_processes(Default, Do) ->
    fun(Job) -> parts(Job, processes(Job, Default), Do) end.

in_ring(Job, Tokens) ->
    Members = processes(Job, 10000),
    parts(Job, Tokens, fun(_, Hops) -> ring:run(Members, Tokens, Hops) end).

external(Job) ->
    each(elements_or_processes(Job), 1, fun spawning:external/1).

fan_in(Job) ->
    parts(Job, maps:get(producers, Job, 100), fun fan:in/2).

command_ask(Job) ->
    each(elements(Job), 1, fun commands:ask/1).
