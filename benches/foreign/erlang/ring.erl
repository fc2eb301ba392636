%% W5: a ring, set up; tokens, which start evenly spread, go that many hops each.
-module(ring).
-export([run/3]).
-export([first/0, member/1]).

run(Members, Tokens, Hops) ->
    First = spawn(?MODULE, first, []),
    Ring = link_up(First, Members - 1, [First]),
    Nodes = list_to_tuple(Ring),
    Took = gate:time(Tokens, 0, fun() ->
        [element(Token * Members div Tokens + 1, Nodes) ! Hops || Token <- lists:seq(0, Tokens - 1)]
    end),
    gate:time(Members, Tokens * (Hops + 1), fun() -> [Node ! stop || Node <- Ring] end),
    Took.

%% The members, each before the one that it sends to; the one that was there first comes last, and
%% closes the ring.
link_up(First, 0, [Next | _] = Ring) ->
    First ! {next, Next},
    Ring;
link_up(First, Left, [Next | _] = Ring) ->
    link_up(First, Left - 1, [spawn(?MODULE, member, [Next]) | Ring]).

first() ->
    receive
        {next, Next} -> member(Next)
    end.

member(Next) ->
    pass(Next, 0).

pass(Next, Got) ->
    receive
        0 ->
            gate:hit(),
            pass(Next, Got + 1);
        stop ->
            gate:hit_with(Got);
        Left ->
            Next ! Left - 1,
            pass(Next, Got + 1)
    end.
