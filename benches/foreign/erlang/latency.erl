%% Many times, and the few figures that say what they are like.
-module(latency).
-export([sample/4]).

%% How many buckets a histogram has at most.
-define(BUCKETS, 100).

%% Of times in nanoseconds; the unit is that many of them. The value is the median.
sample(Variant, Unit, Of, Times) ->
    Sorted = lists:sort(Times),
    N = length(Sorted),
    Percentile = fun(Percent) -> lists:nth(max(ceil(Percent * N / 100), 1), Sorted) / Of end,
    #{
        variant => Variant,
        unit => Unit,
        n => N,
        value => Percentile(50),
        p50 => Percentile(50),
        p99 => Percentile(99),
        max => Percentile(100),
        histogram => histogram(Sorted, 7)
    }.

%% Upper bounds, each with how many are in its bucket, as fine as there is room for: a bucket has
%% the values with the same first bits, that many after the first one.
histogram(Sorted, Precision) ->
    Add = fun(Time, Buckets) -> count(upper(max(Time, 1), Precision), Buckets) end,
    Histogram = lists:foldl(Add, [], Sorted),
    case length(Histogram) =< ?BUCKETS of
        true -> lists:reverse(Histogram);
        false -> histogram(Sorted, Precision - 1)
    end.

count(Bound, [{Bound, Count} | Rest]) -> [{Bound, Count + 1} | Rest];
count(Bound, Buckets) -> [{Bound, 1} | Buckets].

upper(Value, Precision) ->
    Rest = max(bits(Value) - 1 - Precision, 0),
    Value bor (1 bsl Rest - 1).

bits(0) -> 0;
bits(Value) -> 1 + bits(Value bsr 1).
