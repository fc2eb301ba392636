%% W6: producers send the numbers below `Messages` each, in one go, to a consumer that is set up.
%% W7: one sender sends each of the numbers below `Messages` to all receivers, which are set up.
-module(fan).
-export([broadcast/2, in/2, out/2]).
-export([consume/2, produce/3, deliver/3, tell/3]).

in(Producers, Messages) ->
    %% Long queues are outside of the heap, or each collection would go through them.
    Options = [{message_queue_data, off_heap}],
    Consumer = spawn_opt(?MODULE, consume, [Producers * Messages, 0], Options),
    gate:time(1, Producers * sum_below(Messages), fun() ->
        [spawn(?MODULE, produce, [Consumer, 0, Messages]) || _ <- lists:seq(1, Producers)]
    end).

out(Receivers, Messages) ->
    To = [spawn(?MODULE, consume, [Messages, 0]) || _ <- lists:seq(1, Receivers)],
    gate:time(Receivers, Receivers * sum_below(Messages), fun() ->
        spawn(?MODULE, deliver, [To, 0, Messages])
    end).

%% S4: as W7, where the receivers are members of a group.
broadcast(Members, Messages) ->
    case pg:start(pg) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok
    end,
    To = [spawn(?MODULE, consume, [Messages, 0]) || _ <- lists:seq(1, Members)],
    ok = pg:join(all, To),
    gate:time(Members, Members * sum_below(Messages), fun() ->
        spawn(?MODULE, tell, [all, 0, Messages])
    end).

tell(_, Messages, Messages) ->
    ok;
tell(Group, Number, Messages) ->
    send_all(pg:get_members(Group), Number),
    tell(Group, Number + 1, Messages).

%% Takes that many numbers, and brings their sum to the gate.
consume(0, Sum) ->
    gate:hit_with(Sum);
consume(Left, Sum) ->
    receive
        Number -> consume(Left - 1, Sum + Number)
    end.

produce(_, Messages, Messages) ->
    ok;
produce(Consumer, Number, Messages) ->
    Consumer ! Number,
    produce(Consumer, Number + 1, Messages).

deliver(_, Messages, Messages) ->
    ok;
deliver(To, Number, Messages) ->
    send_all(To, Number),
    deliver(To, Number + 1, Messages).

send_all([], _) ->
    ok;
send_all([Receiver | Rest], Number) ->
    Receiver ! Number,
    send_all(Rest, Number).

sum_below(Count) ->
    Count * (Count - 1) div 2.
