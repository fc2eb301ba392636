%% S3: a supervisor starts a process that fails in its first step, again and again, until one of
%% them does not fail.
%%
%% A supervisor goes through the times of all its restarts of the last second at each restart, and a
%% second is the shortest period. With one supervisor for all restarts, that would take most of the
%% time. So each supervisor has some restarts, and then the next one has its turn.
-module(restarting).
-behaviour(supervisor).
-export([time/1]).
-export([init/1, run/1, start/3, child/3]).

%% Restarts of a supervisor.
-define(EACH, 50).

time(Restarts) ->
    %% Others write nothing either when a process fails.
    ok = logger:set_primary_config(level, none),
    gate:time(1, Restarts, fun() -> spawn(?MODULE, run, [Restarts]) end).

run(Restarts) ->
    run(Restarts, 0).

run(Left, Restarted) ->
    Failures = min(Left, ?EACH),
    {ok, Supervisor} = supervisor:start_link(?MODULE, [atomics:new(1, []), Failures, self()]),
    Sum = receive
        {restarted, Count} -> Restarted + Count
    end,
    case Left - Failures of
        0 ->
            %% The supervisor ends with this process, to which it is linked.
            gate:hit_with(Sum);
        Rest ->
            ok = gen_server:stop(Supervisor),
            run(Rest, Sum)
    end.

init(Args) ->
    Flags = #{strategy => one_for_one, intensity => ?EACH, period => 1},
    Child = #{id => failing, start => {?MODULE, start, Args}, restart => transient},
    {ok, {Flags, [Child]}}.

start(Starts, Failures, Parent) ->
    {ok, spawn_link(?MODULE, child, [Starts, Failures, Parent])}.

child(Starts, Failures, Parent) ->
    case atomics:add_get(Starts, 1, 1) of
        Start when Start =< Failures -> exit(it_fails);
        Start -> Parent ! {restarted, Start - 1}
    end.
