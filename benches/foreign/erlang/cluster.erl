%% X1 to X9: this program and another one, which it starts, as nodes at a port that `erl` is told
%% (`-erl_epmd_port`), without the daemon for names.
-module(cluster).
-export([round_trip/1, stream/3, monitors/1, crash/1]).
-export([second/0, echo/0, sink/1, boss/1, wait/0]).

-define(SECOND, 'second@127.0.0.1').
-define(SIZE, 64).

%% X1: times of round trips.
round_trip(Job) ->
    N = measure:elements(Job),
    with_second(fun(_) ->
        Echo = spawn(?SECOND, ?MODULE, echo, []),
        trips(Echo, max(N div 20, 1), []),
        Times = lists:sort(trips(Echo, N, [])),
        At = fun(Percent) -> lists:nth(N * Percent div 100 + 1, Times) / 1000 end,
        [sample(Variant, "us", N, At(Of)) || {Variant, Of} <- [{"p50", 50}, {"p99", 99}]]
    end).

trips(_, 0, Times) ->
    Times;
trips(Echo, Left, Times) ->
    Block = block(Left, ?SIZE),
    Begin = measure:nanos(),
    Echo ! {self(), Block},
    receive
        Block -> trips(Echo, Left - 1, [measure:nanos() - Begin | Times])
    end.

echo() ->
    receive
        {From, Block} ->
            From ! Block,
            echo()
    end.

%% X2 to X4: so many pairs, a process sends blocks of this size to another one each.
stream(Job, Pairs, Size) ->
    Each = measure:elements(Job) div Pairs,
    with_second(fun(_) ->
        Sinks = [spawn(?SECOND, ?MODULE, sink, [0]) || _ <- lists:seq(1, Pairs)],
        send_all(Sinks, max(Each div 20, 1), Size),
        Took = send_all(Sinks, Each, Size),
        [sample("time", "ns", Each * Pairs, Took / (Each * Pairs))]
    end).

send_all(Sinks, Each, Size) ->
    Begin = measure:nanos(),
    Senders = [spawn_monitor(fun() -> send(Sink, 0, Each, Size) end) || Sink <- Sinks],
    [receive {'DOWN', Monitor, _, _, normal} -> ok end || {_, Monitor} <- Senders],
    measure:nanos() - Begin.

send(Sink, All, All, _) ->
    Sink ! {last, self()},
    receive
        {account, All} -> ok
    end;
send(Sink, Number, All, Size) ->
    Sink ! block(Number, Size),
    send(Sink, Number + 1, All, Size).

sink(Count) ->
    receive
        <<Count:64/little, _/binary>> ->
            sink(Count + 1);
        {last, From} ->
            From ! {account, Count},
            sink(0)
    end.

block(Number, Size) ->
    <<Number:64/little, 0:(8 * (Size - 8))>>.

%% X8: monitors of many processes.
monitors(Job) ->
    N = measure:elements(Job),
    with_second(fun(Kill) ->
        {Boss, SetUp} = watch(N),
        Begin = measure:nanos(),
        Boss ! all_die,
        {_, Died} = downs(N, none),
        {_, Again} = watch(N),
        Kill(),
        {First, Last} = downs(N, none),
        Millis = [{"set up", min(SetUp, Again)}, {"all die", Died - Begin},
                  {"session ends", Last - First}],
        [sample(Variant, "ms", N, Nanos / 1000000) || {Variant, Nanos} <- Millis]
    end).

watch(N) ->
    Boss = spawn(?SECOND, ?MODULE, boss, [[]]),
    Boss ! {start, N, self()},
    Pids = receive {pids, All} -> All end,
    Begin = measure:nanos(),
    [monitor(process, Pid) || Pid <- Pids],
    Boss ! {are_you_there, self()},
    receive
        here -> {Boss, measure:nanos() - Begin}
    end.

boss(Pids) ->
    receive
        {start, N, From} ->
            All = [spawn(?MODULE, wait, []) || _ <- lists:seq(1, N)],
            From ! {pids, All},
            boss(All);
        {are_you_there, From} ->
            From ! here,
            boss(Pids);
        all_die ->
            [exit(Pid, kill) || Pid <- Pids],
            boss([])
    end.

wait() ->
    receive
        nothing -> ok
    end.

downs(0, {First, Last}) ->
    {First, Last};
downs(N, Times) ->
    receive
        {'DOWN', _, process, _, _} ->
            Now = measure:nanos(),
            case Times of
                none -> downs(N - 1, {Now, Now});
                {First, _} -> downs(N - 1, {First, Now})
            end
    end.

%% X9: the other program is killed.
crash(_) ->
    with_second(fun(Kill) ->
        monitor(process, spawn(?SECOND, ?MODULE, wait, [])),
        {_, _} = watch(1),
        Begin = measure:nanos(),
        Kill(),
        receive
            {'DOWN', _, process, _, noconnection} ->
                [sample("crash", "ms", 1, (measure:nanos() - Begin) / 1000000)]
        end
    end).

sample(Variant, Unit, N, Value) ->
    #{variant => Variant, unit => Unit, n => N, value => Value}.

%% Starts the other program, and kills it at the end.
with_second(Do) ->
    {ok, [[Port]]} = init:get_argument(erl_epmd_port),
    Options = #{name_domain => longnames, dist_listen => false},
    {ok, _} = net_kernel:start('first@127.0.0.1', Options),
    Cookie = integer_to_list(rand:uniform(1 bsl 64)),
    erlang:set_cookie(list_to_atom(Cookie)),
    Schedulers = integer_to_list(erlang:system_info(schedulers_online)),
    Args = ["-noshell", "-noinput", "+S", Schedulers ++ ":" ++ Schedulers, "-start_epmd", "false",
            "-erl_epmd_port", Port, "-kernel", "inet_dist_use_interface", "{127,0,0,1}",
            "-name", atom_to_list(?SECOND), "-setcookie", Cookie,
            "-pa", filename:dirname(code:which(?MODULE)), "-run", "cluster", "second"],
    Second = open_port({spawn_executable, os:find_executable("erl")}, [{args, Args}]),
    {os_pid, Id} = erlang:port_info(Second, os_pid),
    Kill = fun() -> os:cmd("kill -9 " ++ integer_to_list(Id)) end,
    try
        connect(600),
        Do(Kill)
    after
        Kill()
    end.

connect(0) ->
    throw({failed, "the second program does not come"});
connect(Tries) ->
    case net_kernel:connect_node(?SECOND) of
        true -> ok;
        _ ->
            timer:sleep(100),
            connect(Tries - 1)
    end.

%% The other program ends with the first.
second() ->
    net_kernel:monitor_nodes(true),
    receive
        {nodedown, _} -> halt(0)
    end.
