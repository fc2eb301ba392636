%% What this program uses of the machine: memory, processor time, and how often its threads have gone to
%% sleep. Read on Linux alone.
-module(machine).
-export([resident/0, processor_time/0, switches/0]).

%% The bytes of this program that are in memory.
resident() ->
    Lines = string:split(read("/proc/self/status"), "\n", all),
    [Kilobytes] = [Rest || <<"VmRSS:", Rest/binary>> <- Lines],
    1024 * number(Kilobytes).

%% The nanoseconds that all threads of this program have been on a processor.
processor_time() ->
    lists:sum([number(Text) || Text <- of_threads("schedstat")]).

%% How often the threads of this program have given up a processor of their own accord.
switches() ->
    Lines = lists:append([string:split(Text, "\n", all) || Text <- of_threads("status")]),
    lists:sum([number(Rest) || <<"voluntary_ctxt_switches:", Rest/binary>> <- Lines]).

%% The file of that name of each thread.
of_threads(Name) ->
    Tasks = "/proc/self/task",
    case file:list_dir(Tasks) of
        {ok, Threads} -> [read(filename:join([Tasks, Thread, Name])) || Thread <- Threads];
        {error, _} -> missing()
    end.

%% The first number of a text.
number(Text) ->
    {Number, _} = string:to_integer(string:trim(Text, leading)),
    Number.

%% Files there have no size, which `file:read_file` asks for.
read(Path) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            {ok, Text} = file:read(File, 65536),
            ok = file:close(File),
            Text;
        {error, _} ->
            missing()
    end.

missing() ->
    throw({missing, "not measured here: needs Linux"}).
