%% A counter whose last hit wakes the process that made it, with a sum of what the hits bring along.
%% There is one, which every process finds by itself, so that none has to hold it.
-module(gate).
-export([new/0, hit/0, hit_with/1, time/3, start/3]).

%% How long it waits before it takes what it measures for stuck.
-define(PATIENCE_MS, 300000).

-define(LEFT, 1).
-define(SUM, 2).

%% A gate of the calling process, for one measurement after another.
new() ->
    persistent_term:put(?MODULE, {atomics:new(2, []), self()}).

hit() ->
    hit(persistent_term:get(?MODULE)).

hit_with(Number) ->
    {Counters, _} = Gate = persistent_term:get(?MODULE),
    atomics:add(Counters, ?SUM, Number),
    hit(Gate).

hit({Counters, Owner}) ->
    case atomics:sub_get(Counters, ?LEFT, 1) of
        0 -> Owner ! ?MODULE;
        _ -> ok
    end.

%% The nanoseconds from before `Start` until after that many hits, which bring that sum along.
time(Hits, Sum, Start) ->
    {Took, _} = start(Hits, Sum, Start),
    Took.

%% The same, with what `Start` returns.
start(Hits, Sum, Start) ->
    {Counters, _} = persistent_term:get(?MODULE),
    atomics:put(Counters, ?LEFT, Hits),
    atomics:put(Counters, ?SUM, 0),
    Begin = measure:nanos(),
    Started = Start(),
    receive
        ?MODULE -> ok
    after ?PATIENCE_MS -> throw({failed, "stuck: the gate has not opened"})
    end,
    Took = measure:nanos() - Begin,
    case atomics:get(Counters, ?SUM) of
        Sum -> {Took, Started};
        Other -> throw({failed, io_lib:format("the sum is ~b; it has to be ~b", [Other, Sum])})
    end.
