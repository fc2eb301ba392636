//! Files of the recorder: the causes of files, the number of written and kept files, and a folder
//! without the right to write.

use ganger_observe::trace::Trace;
use ganger_observe::{Alarms, DumpCounts, DumpError, DumpWatch, Dumps, Kind};
use ganger_proc_api::{Process, process_fn};
use ganger_sched::{Observe, Recorder, Scheduler};
use ganger_sim::Sim;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tempfile::{TempDir, tempdir};
use tracing::Level;

const TICK: Duration = Duration::from_millis(1);

fn recorder() -> Recorder {
    Recorder::new().bytes(1 << 20)
}

fn recorded() -> Scheduler {
    let builder = Scheduler::builder().workers(1).record(recorder());
    builder.quiet_failures().start().unwrap()
}

fn fails() -> impl Process {
    process_fn(|_, _, _| Err("it fails".into()))
}

fn ends() -> impl Process {
    process_fn(|_, _, out| {
        out.done(());
        Ok(())
    })
}

/// Returns the names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Returns the causes in the names of a folder, in the order of their times.
fn causes(folder: &Path) -> Vec<String> {
    let names = names(folder).into_iter();
    let cause = |name: String| {
        let (start, cause) = name.rsplit_once('-').unwrap();
        assert!(
            start.starts_with("ganger-") && start.ends_with('Z'),
            "{name}"
        );
        cause.strip_suffix(".pftrace").unwrap().to_owned()
    };
    names.map(cause).collect()
}

/// Reads the only file of a folder back.
#[track_caller]
fn only(folder: &TempDir) -> Trace {
    let names = names(folder.path());
    assert_eq!(names.len(), 1, "{names:?}");
    Trace::read(File::open(folder.path().join(&names[0])).unwrap()).unwrap()
}

fn until_written(watch: &DumpWatch, files: u64) {
    while watch.counts().written < files {
        thread::yield_now();
    }
    assert_eq!(watch.counts().written, files);
}

/// Checks that the looks of the thread until now are over, and have written no more than the file
/// of this request.
fn has_no_more(watch: &DumpWatch, folder: &TempDir) {
    let before = watch.counts().written;
    watch.request("checked");
    until_written(watch, before + 1);
    assert_eq!(causes(folder.path()).last().unwrap(), "checked");
}

// pins: V15
#[test]
fn a_failure_has_one_file_with_what_went_on_before() {
    let folder = tempdir().unwrap();
    let scheduler = recorded();
    scheduler.spawn(fails()).unwrap().wait();
    let dumps = Dumps::on_demand(folder.path()).at_failure().every(TICK);
    let watch = dumps.at_most_every(Duration::ZERO).watch(&scheduler);
    // The failure before the watch has none.
    let watch = watch.unwrap();
    has_no_more(&watch, &folder);
    fs::remove_file(folder.path().join(&names(folder.path())[0])).unwrap();

    let failed = scheduler.spawn(fails()).unwrap();
    let pid = failed.pid().to_string();
    failed.wait();
    until_written(&watch, 2);
    assert_eq!(causes(folder.path()), ["failure"]);
    let turns = only(&folder).summary().turns;
    assert!(
        turns.iter().any(|it| it.process.ends_with(&pid)),
        "{turns:?}"
    );
    has_no_more(&watch, &folder);
    assert_eq!(causes(folder.path()), ["failure", "checked"]);
}

// pins: V15
#[test]
fn a_long_step_has_one_file_while_it_goes_on() {
    let folder = tempdir().unwrap();
    let scheduler = recorded();
    let dumps = Dumps::on_demand(folder.path()).at_most_every(Duration::ZERO);
    let dumps = dumps.at_long_step(Duration::from_millis(20)).every(TICK);
    let watch = dumps.watch(&scheduler).unwrap();
    let (begun, begins) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let stuck = process_fn(move |_, _, out| {
        begun.send(())?;
        released.lock().unwrap().recv()?;
        out.done(());
        Ok(())
    });
    let stuck = scheduler.spawn(stuck).unwrap();
    begins.recv().unwrap();
    // The stuck process keeps another process waiting, until a spare takes the place of its worker.
    assert!(scheduler.spawn(ends()).unwrap().wait().is_done());
    until_written(&watch, 1);
    assert_eq!(causes(folder.path()), ["long_step"]);
    let turns = only(&folder).summary().turns;
    let pid = stuck.pid().to_string();
    assert!(
        turns.iter().any(|it| it.process.ends_with(&pid)),
        "{turns:?}"
    );
    release.send(()).unwrap();
    assert!(stuck.wait().is_done());
    has_no_more(&watch, &folder);
}

// pins: V15, V16
#[test]
fn an_alarm_has_a_file_each_time_it_is_raised() {
    let folder = tempdir().unwrap();
    let scheduler = recorded();
    let value = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&value);
    // Ordering: Relaxed here and below: a value alone.
    let own = move |_: &_| read.load(Ordering::Relaxed);
    let alarms = Alarms::new().custom("back log", 10, 5, own);
    let mut alarms = alarms
        .looks(Kind::Custom("back log"), 1, 1)
        .looker(&scheduler);
    let dumps = Dumps::new(folder.path()).at_most_every(Duration::ZERO);
    let mut dumps = dumps.looker(&scheduler).unwrap();
    dumps.look();
    assert_eq!(names(folder.path()), [""; 0]);
    for times in 1..=2 {
        value.store(10, Ordering::Relaxed);
        alarms.look();
        dumps.look();
        dumps.look();
        assert_eq!(causes(folder.path()), vec!["alarm_back_log"; times]);
        // An alarm raised and over between two looks has a file as well.
        value.store(0, Ordering::Relaxed);
        alarms.look();
        dumps.look();
        assert_eq!(dumps.counts().written, times as u64);
    }
    value.store(10, Ordering::Relaxed);
    alarms.look();
    value.store(0, Ordering::Relaxed);
    alarms.look();
    assert!(alarms.raised().is_empty());
    dumps.look();
    assert_eq!(dumps.counts().written, 3);
}

// pins: V15
#[test]
fn causes_too_soon_after_a_file_are_counted() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_owned();
    Sim::new(7)
        .builder(|it| it.record(recorder()))
        .run(move |rt| {
            let dumps = Dumps::on_demand(&path).at_failure();
            let mut dumps = dumps.looker(rt).unwrap();
            let mut fail = || {
                let _failed = rt.wait(rt.spawn(fails()).unwrap());
                dumps.look();
                let DumpCounts {
                    written, left_out, ..
                } = dumps.counts();
                (written, left_out)
            };
            assert_eq!(fail(), (1, 0));
            assert_eq!(fail(), (1, 1));
            rt.run_for(Duration::from_secs(50));
            assert_eq!(fail(), (1, 2));
            // The time counts from the last file, and not from the last cause.
            rt.run_for(Duration::from_secs(11));
            assert_eq!(fail(), (2, 2));
            assert_eq!(fail(), (2, 3));
            // A file on demand is written, and does not put off further files.
            rt.run_for(Duration::from_secs(30));
            drop(dumps.now().unwrap());
            assert_eq!(causes(&path), ["failure", "failure", "demand"]);
            rt.run_for(Duration::from_secs(31));
            // A look without a cause writes no file.
            dumps.look();
            assert_eq!(dumps.counts().written, 3);
        });
}

// pins: V15
#[test]
fn a_request_is_granted_at_once_and_a_second_is_counted() {
    let folder = tempdir().unwrap();
    let scheduler = recorded();
    let dumps = Dumps::on_demand(folder.path()).every(Duration::MAX);
    let watch = Arc::new(dumps.watch(&scheduler).unwrap());
    let asked = Arc::clone(&watch);
    // A step asks, and does not wait.
    let asks = process_fn(move |_, _, out| {
        asked.request("orders are wrong");
        out.done(());
        Ok(())
    });
    assert!(scheduler.spawn(asks).unwrap().wait().is_done());
    until_written(&watch, 1);
    assert_eq!(
        causes(folder.path()),
        ["orders are wrong".replace(' ', "_")]
    );
    assert_eq!(only(&folder).scheduler(), "main");
    watch.request("again");
    while watch.counts().left_out == 0 {
        thread::yield_now();
    }
    assert_eq!((watch.counts().written, watch.counts().failed), (1, 0));
}

// pins: V15
#[test]
fn the_oldest_files_are_removed_and_those_of_others_stay() {
    let folder = tempdir().unwrap();
    let others = [
        "ganger-other-20000101T000000.000Z-demand.pftrace",
        "notes.txt",
    ];
    let old = [
        "ganger-main-20000101T000000.000Z-failure.json",
        "ganger-main-20000102T000000.000Z-demand.pftrace.part",
    ];
    for name in others.iter().chain(&old) {
        fs::write(folder.path().join(name), "old").unwrap();
    }
    let scheduler = recorded();
    let dumps = Dumps::on_demand(folder.path()).keep(3).json();
    let mut dumps = dumps.looker(&scheduler).unwrap();
    let mut written = Vec::new();
    for times in 1..=5_usize {
        let file = dumps.now().unwrap();
        let json = fs::read_to_string(&file).unwrap();
        assert!(json.starts_with('{') && json.trim_end().ends_with('}'));
        written.push(file.file_name().unwrap().to_str().unwrap().to_owned());
        let newest = written.iter().rev().take(3).map(String::as_str);
        let kept = old
            .iter()
            .rev()
            .take(3_usize.saturating_sub(times))
            .copied();
        let mut expected: Vec<_> = newest.chain(kept).chain(others).collect();
        expected.sort_unstable();
        assert_eq!(names(folder.path()), expected);
    }
}

// pins: V15, V16
#[test]
fn a_folder_that_can_not_be_written_is_told_and_stops_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("traces");
    let scheduler = recorded();
    let dumps = Dumps::on_demand(&path).at_failure().at_alarm();
    let mut dumps = dumps
        .at_most_every(Duration::ZERO)
        .looker(&scheduler)
        .unwrap();
    // A file is where the folder was.
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "no folder").unwrap();

    log::keep();
    let alarms = Alarms::new().looker(&scheduler);
    for failed in 1..=2 {
        scheduler.spawn(fails()).unwrap().wait();
        dumps.look();
        // The alarm about it asks for no file.
        dumps.look();
        assert_eq!(dumps.counts().failed, failed);
    }
    let raised = alarms.raised();
    let [alarm] = &*raised else {
        panic!("{raised:?}");
    };
    assert_eq!((alarm.kind, alarm.value), (Kind::TraceFiles, 1));
    let start = format!("no trace can be written in {}: ", path.display());
    assert!(alarm.text.starts_with(&start), "{alarm:?}");
    let error = dumps.now().unwrap_err();
    assert!(matches!(error, DumpError::File { .. }), "{error:?}");

    fs::remove_file(&path).unwrap();
    drop(dumps.now().unwrap());
    let levels = log::levels();
    assert_eq!(
        levels,
        [
            Level::ERROR,
            Level::WARN,
            Level::ERROR,
            Level::ERROR,
            Level::INFO,
            Level::INFO
        ]
    );
    assert!(alarms.raised().is_empty());
    assert_eq!((dumps.counts().written, dumps.counts().failed), (1, 3));
    assert!(scheduler.spawn(ends()).unwrap().wait().is_done());
}

// pins: V15
#[test]
fn what_can_not_work_is_refused_at_the_beginning() {
    let folder = tempdir().unwrap();
    let dumps = || Dumps::new(folder.path().join("deep/er"));
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    let unrecorded = builder.start().unwrap();
    let error = dumps().watch(&unrecorded).unwrap_err();
    assert!(matches!(error, DumpError::NotRecording(_)), "{error:?}");
    let scheduler = recorded();
    fs::write(folder.path().join("deep"), "no folder").unwrap();
    let error = dumps().watch(&scheduler).unwrap_err();
    assert!(matches!(error, DumpError::File { .. }), "{error:?}");
    fs::remove_file(folder.path().join("deep")).unwrap();
    drop(dumps().watch(&scheduler).unwrap());
    assert!(folder.path().join("deep/er").is_dir());
}

/// The events of this thread. Interest is cached for all threads at once, so the whole program has
/// a single subscriber.
mod log {
    use std::cell::RefCell;
    use std::sync::Once;
    use tracing::{Event, Level, Subscriber};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    thread_local! {
        static LEVELS: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
    }

    struct Kept;

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            if event.metadata().target() == "ganger::observe" {
                let level = *event.metadata().level();
                LEVELS.with_borrow_mut(|levels| levels.push(level));
            }
        }
    }

    /// Begins to keep the events of each thread.
    pub(super) fn keep() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(Kept);
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
    }

    /// Returns the levels of this thread's events so far.
    pub(super) fn levels() -> Vec<Level> {
        LEVELS.take()
    }
}
