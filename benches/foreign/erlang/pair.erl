%% W4: pairs, set up, count a number down in turns, that many round trips each. The handle of a
%% process is its PID.
-module(pair).
-export([run/2]).
-export([half/0, half/1]).

run(Pairs, Trips) ->
    Whites = [set_up() || _ <- lists:seq(1, Pairs)],
    gate:time(2 * Pairs, Pairs * (2 * Trips + 1), fun() ->
        %% The first message, and the last, which is a zero, are half a round trip each.
        [White ! 2 * Trips || White <- Whites]
    end).

set_up() ->
    White = spawn(?MODULE, half, []),
    Black = spawn(?MODULE, half, [White]),
    White ! {partner, Black},
    White.

half() ->
    receive
        {partner, Partner} -> half(Partner)
    end.

half(Partner) ->
    play(Partner, 1).

%% Brings along how many messages it got: this one is `Got`.
play(Partner, Got) ->
    receive
        Left when Left > 1 ->
            Partner ! Left - 1,
            play(Partner, Got + 1);
        %% One half sees `1`, the other `0`.
        1 ->
            Partner ! 0,
            gate:hit_with(Got);
        0 ->
            gate:hit_with(Got)
    end.
