%% What this program uses of the machine: memory and processor time. Read on Linux alone.
-module(machine).
-export([resident/0, processor_time/0]).

%% The bytes of this program that are in memory.
resident() ->
    Lines = string:split(read("/proc/self/status"), "\n", all),
    [Kilobytes] = [Rest || <<"VmRSS:", Rest/binary>> <- Lines],
    1024 * number(Kilobytes).

%% The nanoseconds that all threads of this program have been on a processor.
processor_time() ->
    Tasks = "/proc/self/task",
    case file:list_dir(Tasks) of
        {ok, Threads} ->
            Files = [filename:join([Tasks, Thread, "schedstat"]) || Thread <- Threads],
            lists:sum([number(read(File)) || File <- Files]);
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
