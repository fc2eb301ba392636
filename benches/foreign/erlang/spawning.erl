%% W1: a process spawns others; each runs once, hits the gate, and ends.
%% W2: a tree of ten children a process: leaves send their number up, parents the sum.
-module(spawning).
-export([external/1, monitored/1, skynet/1]).
-export([ends/0, grow/3, parent/1, root/1]).

-define(CHILDREN, 10).

external(Processes) ->
    gate:time(Processes, 0, fun() -> spawn_all(Processes) end).

spawn_all(0) ->
    ok;
spawn_all(Processes) ->
    spawn(gate, hit, []),
    spawn_all(Processes - 1).

%% S2: a process spawns others, which end at once, and is told of each end.
monitored(Processes) ->
    gate:time(1, Processes, fun() -> spawn(?MODULE, parent, [Processes]) end).

parent(Processes) ->
    monitor_all(Processes),
    gate:hit_with(told(Processes, 0)).

monitor_all(0) ->
    ok;
monitor_all(Processes) ->
    spawn_monitor(?MODULE, ends, []),
    monitor_all(Processes - 1).

ends() ->
    ok.

told(0, Told) ->
    Told;
told(Left, Told) ->
    receive
        {'DOWN', _, process, _, _} -> told(Left - 1, Told + 1)
    end.

skynet(Job) ->
    Levels = max(levels(measure:elements_or_processes(Job), 1 + ?CHILDREN), 1),
    tree(max(Levels - 2, 1)),
    Took = tree(Levels),
    Processes = lists:sum([leaves(Level) || Level <- lists:seq(0, Levels)]),
    [#{variant => "time", unit => "ms", n => Processes, value => Took / 1.0e6}].

%% Levels of the largest tree that has no more processes; the smallest has `Fits`.
levels(Processes, Fits) when Fits > Processes -> 0;
levels(Processes, Fits) -> 1 + levels(Processes, Fits * ?CHILDREN + 1).

leaves(0) -> 1;
leaves(Levels) -> ?CHILDREN * leaves(Levels - 1).

tree(Levels) ->
    Leaves = leaves(Levels),
    gate:time(1, Leaves * (Leaves - 1) div 2, fun() -> spawn(?MODULE, root, [Leaves]) end).

root(Leaves) ->
    gate:hit_with(sum_of_children(0, Leaves)).

%% A process with that many leaves below it, or one that is itself the leaf.
grow(Parent, Number, 1) ->
    Parent ! Number;
grow(Parent, Number, Leaves) ->
    Parent ! sum_of_children(Number, Leaves).

sum_of_children(Number, Leaves) ->
    Below = Leaves div ?CHILDREN,
    spawn_children(Number, Below, ?CHILDREN),
    collect(?CHILDREN, 0).

spawn_children(_, _, 0) ->
    ok;
spawn_children(Number, Below, Left) ->
    spawn(?MODULE, grow, [self(), Number, Below]),
    spawn_children(Number + Below, Below, Left - 1).

collect(0, Sum) ->
    Sum;
collect(Left, Sum) ->
    receive
        Number -> collect(Left - 1, Sum + Number)
    end.
