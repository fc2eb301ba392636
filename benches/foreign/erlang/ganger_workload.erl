%% Runs one workload once, in Erlang: the same workloads, arguments and output as `ganger-workload`,
%% the program of the peers in Rust.
%%
%%   ganger_workload  the command line, and what is printed
%%   measure          what a job is: how often what is done, warm-up, which workload is where
%%   gate             many hits, one wake-up
%%   latency          many times, and the few figures that say what they are like
%%   spawning         W1 spawn_external, W2 skynet
%%   yielding         W3a yield_1, W3b yield_100
%%   pair             W4 ping_pong, W4b ping_pong_1000, W4pid ping_pong_pid
%%   ring             W5 ring_1, W5b ring_100
%%   fan              W6 fan_in, W7 fan_out
%%   idle             W8 memory_idle, W10 wake_latency, W11 idle_cpu
%%   commands         W9ask command_ask
%%   race             W13 fairness
%%   restarting       S3 restart
%%   timers           W14 to W17: timer_churn, timer_fire, timer_lateness, timers_idle
%%   cluster          X1 to X9: two programs
%%   machine          memory and processor time of this program
%%
%% How many schedulers there are is said to `erl` itself (`+S`), and how many processes there may be
%% (`+P`). There is no main thread that is no worker: what other programs do there, a process does.
-module(ganger_workload).
-export([main/0]).

main() ->
    try run(init:get_plain_arguments()) of
        Lines ->
            io:put_chars(Lines),
            halt(0)
    catch
        throw:{missing, Why} -> stop(3, Why);
        throw:{failed, Why} -> stop(1, Why);
        Class:Why:Stack -> stop(1, io_lib:format("~p: ~p~n~p", [Class, Why, Stack]))
    end.

stop(Code, Why) ->
    io:put_chars(standard_error, [Why, $\n]),
    halt(Code).

run(["--list"]) ->
    [[Id, " erlang\n"] || Id <- measure:ids()];
run(Args) ->
    Job = parse(Args, #{size => full}),
    case Job of
        #{id := _} -> ok;
        #{} -> throw({failed, "--workload is needed"})
    end,
    check_workers(Job),
    gate:new(),
    [[line(Job, Sample), $\n] || Sample <- measure:run(Job)].

parse([], Job) ->
    Job;
parse(["--workload", Id | Rest], Job) ->
    parse(Rest, Job#{id => Id});
parse(["--peer", "erlang" | Rest], Job) ->
    parse(Rest, Job);
parse(["--peer", Peer | _], _) ->
    throw({failed, ["there is no peer `", Peer, "` here; there is erlang"]});
parse(["--size", "full" | Rest], Job) ->
    parse(Rest, Job#{size := full});
parse(["--size", "quick" | Rest], Job) ->
    parse(Rest, Job#{size := quick});
parse(["--size", Size | _], _) ->
    throw({failed, ["there is no size `", Size, "`; there are full, quick"]});
parse(["--workers", N | Rest], Job) ->
    parse(Rest, Job#{workers => count("--workers", N)});
parse(["--processes", N | Rest], Job) ->
    parse(Rest, Job#{processes => count("--processes", N)});
parse(["--producers", N | Rest], Job) ->
    parse(Rest, Job#{producers => count("--producers", N)});
parse(["--rounds", N | Rest], Job) ->
    parse(Rest, Job#{rounds => count("--rounds", N)});
parse([Arg | _], _) ->
    throw({failed, ["unexpected argument `", Arg, "`, or one without its value"]}).

count(Option, Text) ->
    try list_to_integer(Text) of
        N when N > 0 -> N;
        _ -> throw({failed, [Option, " is 1 at least"]})
    catch
        error:badarg -> throw({failed, [Option, " is a number, not `", Text, "`"]})
    end.

%% A run with other schedulers than it was told would be a wrong figure.
check_workers(#{workers := Workers}) ->
    case erlang:system_info(schedulers_online) of
        Workers -> ok;
        Other ->
            Why = "~b schedulers for ~b workers: start `erl` with +S",
            throw({failed, io_lib:format(Why, [Other, Workers])})
    end;
check_workers(#{}) ->
    ok.

line(#{id := Id}, #{variant := Variant, unit := Unit, n := N, value := Value} = Sample) ->
    Of = io_lib:format("\"workload\":\"~s\",\"peer\":\"erlang\"", [Id]),
    What = io_lib:format("\"variant\":\"~s\",\"unit\":\"~s\"", [Variant, Unit]),
    Figure = io_lib:format("\"n\":~b,\"value\":~w", [N, float(Value)]),
    ["{", lists:join(",", [Of, What, Figure]), latencies(Sample), "}"].

latencies(#{p50 := P50, p99 := P99, max := Max, histogram := Histogram}) ->
    Buckets = [io_lib:format("[~b,~b]", [Bound, Count]) || {Bound, Count} <- Histogram],
    Figures = io_lib:format(",\"p50\":~w,\"p99\":~w,\"max\":~w", [P50, P99, Max]),
    [Figures, ",\"histogram\":[", lists:join(",", Buckets), "]"];
latencies(#{}) ->
    [].
