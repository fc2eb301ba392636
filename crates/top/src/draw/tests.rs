//! Each view, drawn from the demo on a small and on a large screen.

use super::*;
use crate::app::{Deed, Wanted};
use crate::feed::{self, News};
use crate::source::{Demo, Source};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::{Color, Modifier};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];

/// A screen and the demo, without threads.
struct Stage {
    app: App,
    demo: Demo,
    clock: Arc<Mutex<Duration>>,
    before: Vec<crate::measure::Key>,
    theme: Theme,
}

impl Stage {
    fn new() -> Self {
        let clock = Arc::new(Mutex::new(Duration::from_mins(1)));
        let shown = Arc::clone(&clock);
        let demo = Demo::by(move || *shown.lock().unwrap());
        let mut stage = Self {
            app: App::new(demo.name()),
            demo,
            clock,
            before: Vec::new(),
            theme: Theme::new(false),
        };
        stage.look();
        stage.pass(1);
        for _ in 0..3 {
            // From busy to messages, growth and mailbox.
            stage.press(KeyCode::Char('<'));
        }
        stage
    }

    /// Asks once, as both threads of the feed do.
    fn look(&mut self) {
        self.app.take(News::Snapshot(self.demo.snapshot().unwrap()));
        self.list();
    }

    /// Asks once, as the thread of the lists does.
    fn list(&mut self) {
        let wish = self.app.wish();
        match feed::ask(&self.demo, &wish, &mut self.before) {
            Some(Ok(answer)) => self.app.take(News::Answer(wish, answer)),
            Some(Err(fault)) => self.app.take(News::Fault(wish, fault)),
            None => {}
        }
    }

    /// Seconds pass, with a look after each.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            *self.clock.lock().unwrap() += Duration::from_secs(1);
            let now = *self.clock.lock().unwrap();
            self.app.tick(now);
            self.look();
        }
    }

    fn press(&mut self, code: KeyCode) -> Deed {
        let deed = self.app.key(KeyEvent::from(code));
        self.list();
        deed
    }

    fn type_in(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c));
        }
    }

    fn buffer(&mut self, (width, height): (u16, u16)) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let (app, theme) = (&mut self.app, self.theme);
        let draw = |frame: &mut ratatui::Frame<'_>| {
            let area = frame.area();
            screen(app, theme, area, frame.buffer_mut());
        };
        terminal.draw(draw).unwrap();
        terminal.backend().buffer().clone()
    }

    fn lines(&mut self, size: (u16, u16)) -> Vec<String> {
        let buffer = self.buffer(size);
        let line = |y| {
            let symbols = (0..size.0).map(|x| buffer[(x, y)].symbol());
            symbols.collect::<String>().trim_end().to_owned()
        };
        (0..size.1).map(line).collect()
    }

    fn text(&mut self, size: (u16, u16)) -> String {
        self.lines(size).join("\n")
    }

    /// Asserts that each part is on both sizes of the screen.
    #[track_caller]
    fn shows(&mut self, parts: &[&str]) {
        for size in SIZES {
            let text = self.text(size);
            for part in parts {
                assert!(text.contains(part), "{part:?} is not on {size:?}:\n{text}");
            }
        }
    }

    /// Returns the marked line, on a small screen.
    fn selected(&mut self) -> String {
        let buffer = self.buffer(SIZES[0]);
        let is_marked = |y: &u16| buffer[(0, *y)].modifier.contains(Modifier::REVERSED);
        let y = (0..24).find(is_marked).expect("no line is marked");
        (0..80).map(|x| buffer[(x, y)].symbol()).collect()
    }
}

#[test]
fn the_head_and_the_table_fit_both_screens() {
    let mut stage = Stage::new();
    stage.pass(6);
    stage.shows(&[
        "ganger-top demo  scheduler shop (1 of 2)  node berlin  up 67 s",
        "workers 4  busy ",
        "asleep 2  searching 1  spares 1",
        "live 42  ready ",
        "messages ",
        "(340 wait)",
        "ready to run p50 1.2 µs p99 ",
        "step p50 600 ns p99 ",
        "alarms 2",
        "long steps 7 (max 1.2 s)",
        "Processes 42 of 42",
        "MAIL▼",
        "mailer Mailer",
        "tenant-0 Orders<B",
        "running 62 s",
        "? help",
    ]);
    let small = stage.lines(SIZES[0]);
    assert!(small.iter().all(|it| it.chars().count() <= 80));
    let mailer = small.iter().find(|it| it.contains("mailer")).unwrap();
    assert!(mailer.ends_with('M'), "its warning has no room: {mailer}");
    let large = stage.text(SIZES[1]);
    assert!(large.contains("GROW/s") && large.contains("MESSAGES") && large.contains("RST"));
    assert!(large.contains('▇') || large.contains('█'));
}

#[test]
fn each_view_has_its_key_and_its_content() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('g'));
    stage.shows(&["Groups ", "WAITS FOR", "Session.run", "mutex", "tenant-1"]);
    stage.press(KeyCode::Char('e'));
    stage.shows(&["Tree", "- shop supervisor, one for all 4294967296"]);
    stage.shows(&[
        "  - workers supervisor, one for one",
        "    ",
        "Orders<Basket>",
    ]);
    stage.press(KeyCode::Char('w'));
    let heads = "Waits 7, cycles 1, 4 behind thread sql-1 (longest ";
    stage.shows(&[heads, "mutex", "sql", "thread sql-1"]);
    stage.press(KeyCode::Char('o'));
    stage.shows(&["Sockets 5 of 5", "tcp_listener", "10.1.0.7:443", "Session"]);
    stage.press(KeyCode::Enter);
    stage.shows(&["4294967306"]);
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::Char('s'));
    stage.pass(1);
    stage.shows(&["Sockets 0 of 0", "ganger-net does not drive this scheduler"]);
    stage.press(KeyCode::Char('s'));
    stage.pass(1);
    stage.press(KeyCode::Char('c'));
    stage.shows(&["Nodes shop of demo", "billing", "stock", "up"]);
    stage.shows(&[
        "shop: names 2 strong, 1 eventual; lease",
        "of 5.0 s left, names 1, locks 1",
    ]);
    stage.shows(&[
        "NAME", "invoices", "strong", "TOKEN", "41", "cart", "eventual",
    ]);
    stage.press(KeyCode::Char('a'));
    stage.shows(&[
        "Alarms 2, long steps 1",
        "deadlock",
        "two transfers wait for each other",
    ]);
    stage.shows(&["long step", "computes still in run: shop::Report"]);
    stage.press(KeyCode::Char('l'));
    stage.shows(&["Dead letters 20", "ended", "Update mail "]);
    stage.press(KeyCode::Char('p'));
    stage.shows(&["Processes 42 of 42"]);
    stage.press(KeyCode::Char('?'));
    stage.shows(&["Keys", "never yields", "as a trace, for Perfetto", "Ctrl-C"]);
    assert_eq!(stage.press(KeyCode::Char('x')), Deed::None);
    stage.shows(&["mailer"]);
    stage.press(KeyCode::Tab);
    stage.shows(&["Groups "]);
    stage.press(KeyCode::BackTab);
    stage.press(KeyCode::BackTab);
    stage.shows(&["Dead letters 20"]);
}

/// Lets the program allow actions.
fn allow(stage: &mut Stage, actions: &[&str]) {
    let mut snapshot = stage.demo.snapshot().unwrap();
    snapshot.actions = actions.iter().map(|it| (*it).to_owned()).collect();
    stage.app.take(News::Snapshot(snapshot));
}

// pins: V2
#[test]
fn an_action_that_ends_a_process_is_asked_about_first() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('x'));
    stage.shows(&["this endpoint only reads"]);
    allow(&mut stage, &["terminate", "suspend", "from the future"]);
    let selected = stage.app.rows.all()[0].key();
    assert_eq!(stage.press(KeyCode::Char('x')), Deed::None);
    stage.shows(&["mailer: s suspend  t terminate  Esc leave it"]);
    let all = ["suspend", "resume", "restart", "cancel", "terminate"];
    allow(&mut stage, &all);
    stage.shows(&["s suspend  u resume  r restart  c cancel  t terminate  Esc leave it"]);
    allow(&mut stage, &["terminate", "suspend", "from the future"]);
    // Neither allowed nor known.
    assert_eq!(stage.press(KeyCode::Char('c')), Deed::None);
    stage.shows(&["Processes "]);
    stage.press(KeyCode::Char('x'));
    assert_eq!(stage.press(KeyCode::Char('t')), Deed::None);
    stage.shows(&["terminate mailer {shop|4294967326}?  y yes"]);
    assert_eq!(stage.press(KeyCode::Enter), Deed::None);
    assert_eq!(stage.press(KeyCode::Char('y')), Deed::None);
    stage.press(KeyCode::Char('x'));
    stage.press(KeyCode::Char('t'));
    let act = |action| {
        let process = selected.clone();
        Deed::Act(Wanted { action, process })
    };
    assert_eq!(stage.press(KeyCode::Char('y')), act("terminate"));
    stage.press(KeyCode::Char('x'));
    // Another order does not change the process of the question.
    stage.app.is_descending = false;
    stage.pass(1);
    allow(&mut stage, &["suspend"]);
    assert_eq!(stage.press(KeyCode::Char('s')), act("suspend"));
    stage.shows(&["suspend: asks for it"]);
    // Of the view of a single process, as well.
    stage.app.is_descending = true;
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Char('x'));
    assert!(matches!(stage.press(KeyCode::Char('s')), Deed::Act(_)));
    stage.press(KeyCode::Char('g'));
    stage.press(KeyCode::Char('x'));
    stage.shows(&["no live process is selected"]);
}

#[test]
fn a_cycle_is_red_and_told_without_colours_too() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('w'));
    let first = |stage: &mut Stage| stage.buffer(SIZES[0])[(6, 7)].clone();
    let plain = first(&mut stage);
    assert_eq!((plain.symbol(), plain.fg), ("4", Color::Reset));
    assert!(plain.modifier.contains(Modifier::BOLD));
    let lines = stage.lines(SIZES[0]);
    assert!(lines[7].starts_with("1     42949"), "{}", lines[7]);
    assert!(
        lines[9].starts_with("      42949"),
        "it waits behind the cycle: {}",
        lines[9]
    );
    stage.theme = Theme::new(true);
    assert_eq!(first(&mut stage).fg, Color::Red);
}

#[test]
fn a_single_process_shows_all_of_it() {
    let mut stage = Stage::new();
    stage.pass(6);
    stage.press(KeyCode::Enter);
    stage.shows(&[
        "Process",
        "{shop|4294967326}",
        "shop::Mailer, run",
        "mailer",
        "messages",
    ]);
    stage.shows(&[
        "its mailbox grows",
        ", watched by 2 (",
        "restarted    3 times, the last time: failed: no stock",
        ", 440 bytes",
        "linked to",
        "/s now",
        "longest step",
    ]);
    for _ in 0..30 {
        stage.press(KeyCode::Down);
    }
    stage.shows(&["linked to"]);
    stage.press(KeyCode::Esc);
    stage.shows(&["Processes 42 of 42"]);
}

#[test]
fn what_has_ended_is_grey_for_five_seconds() {
    let mut stage = Stage::new();
    stage.theme = Theme::new(true);
    stage.type_in("/importer");
    stage.press(KeyCode::Enter);
    stage.shows(&["filter importer (1)"]);
    // The importer crashes at 63 s.
    stage.pass(2);
    let text = stage.text(SIZES[0]);
    assert!(text.contains("ended"), "{text}");
    let buffer = stage.buffer(SIZES[0]);
    let line = stage
        .lines(SIZES[0])
        .iter()
        .position(|it| it.contains("ended"))
        .unwrap();
    let cell = &buffer[(0, u16::try_from(line).unwrap())];
    assert_eq!(cell.fg, Color::DarkGray);
    stage.pass(5);
    assert!(!stage.text(SIZES[0]).contains("ended"));
}

#[test]
fn a_filter_acts_while_it_is_typed() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('/'));
    stage.type_in("type:shelf");
    let text = stage.text(SIZES[0]);
    assert!(text.contains("filter: type:shelf") && text.contains("filter type:shelf (4)"));
    assert!(!text.contains("mailer"));
    // Keys are text now, and wrong text keeps the last filter.
    stage.type_in(" q");
    stage.shows(&["No process passes the filter. Esc clears it."]);
    stage.press(KeyCode::Backspace);
    stage.type_in("state:lost");
    stage.shows(&["no state is called \"lost\"", "filter type:shelf state (0)"]);
    stage.press(KeyCode::Enter);
    assert!(stage.app.edit.is_some(), "a wrong filter stays open");
    stage.press(KeyCode::Esc);
    stage.shows(&["Processes 42 of 42", "mailer"]);
}

#[test]
fn a_selection_follows_its_process() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Down);
    assert!(stage.selected().contains("report"), "{}", stage.selected());
    // By PID, the lowest first.
    for _ in 0..3 {
        stage.press(KeyCode::Char('<'));
    }
    stage.shows(&["PID▲"]);
    assert!(stage.selected().contains("report"), "{}", stage.selected());
    stage.press(KeyCode::Char('r'));
    stage.pass(3);
    assert!(stage.selected().contains("report"), "{}", stage.selected());
    stage.press(KeyCode::End);
    assert!(
        stage.selected().contains("shop Supervisor"),
        "{}",
        stage.selected()
    );
    stage.press(KeyCode::Home);
    stage.press(KeyCode::PageDown);
    stage.press(KeyCode::PageUp);
    assert!(stage.selected().contains("Session"), "{}", stage.selected());
}

#[test]
fn a_tree_folds_and_leads_to_its_processes() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('e'));
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Left);
    stage.shows(&["+ workers supervisor"]);
    assert!(!stage.text(SIZES[1]).contains("mailer"));
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Down);
    // A leaf goes to its parent.
    stage.press(KeyCode::Left);
    assert!(stage.selected().contains("workers"), "{}", stage.selected());
    stage.press(KeyCode::Enter);
    stage.shows(&["{shop|4294967297}"]);
    stage.press(KeyCode::Esc);
    stage.shows(&["Tree"]);
}

#[test]
fn a_group_leads_to_its_processes() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('g'));
    stage.press(KeyCode::Enter);
    stage.shows(&["filter state:idle type:web::Session (20)"]);
}

#[test]
fn a_view_without_an_answer_says_nothing_of_processes() {
    let mut stage = Stage::new();
    for (key, none) in [
        ('w', "No process waits for another"),
        ('g', "No process"),
        ('e', "No process"),
        ('o', "No socket"),
        ('l', "No dead letter"),
    ] {
        // The key alone: the answer comes later.
        stage.app.key(KeyEvent::from(KeyCode::Char(key)));
        let text = stage.text(SIZES[0]);
        let asks = text.contains("Asks, and has no answer yet.");
        assert!(
            asks && !text.contains(none) && !text.contains("cycles 0"),
            "{text}"
        );
        stage.list();
        let text = stage.text(SIZES[0]);
        assert!(!text.contains("no answer yet"), "{text}");
    }
}

#[test]
fn another_scheduler_has_its_own_head_and_table() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('s'));
    stage.shows(&[
        "scheduler batch (2 of 2)",
        "busy not counted",
        "build the scheduler with Builder::observe",
        "Processes 3 of 3",
        "Job",
    ]);
    stage.press(KeyCode::Char('s'));
    stage.shows(&["scheduler shop (1 of 2)"]);
}

#[test]
fn a_pause_stands_still_and_says_so() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char(' '));
    stage.pass(3);
    stage.shows(&["PAUSED", "up 61 s"]);
    stage.press(KeyCode::Char(' '));
    stage.pass(1);
    stage.shows(&["up 65 s"]);
}

#[test]
fn a_program_that_goes_away_is_told_and_comes_back() {
    let mut stage = Stage::new();
    let fault = || crate::Fault::Unreachable {
        address: "127.0.0.1:7007".to_owned(),
        error: std::io::ErrorKind::ConnectionRefused.into(),
    };
    stage.app.tick(Duration::from_secs(70));
    stage
        .app
        .take(News::Lost(fault(), Duration::from_millis(250)));
    stage.app.tick(Duration::from_secs(73));
    stage.app.take(News::Lost(fault(), Duration::from_secs(2)));
    let unreachable = News::Fault(stage.app.wish(), fault());
    stage.app.take(unreachable);
    stage.shows(&[
        "NO ANSWER for 3.0 s, asks again in 2 s",
        "start the program",
        "mailer",
    ]);
    stage.look();
    stage.shows(&["demo answers again"]);
    assert!(!stage.text(SIZES[0]).contains("NO ANSWER"));
}

#[test]
fn an_endpoint_without_a_view_says_so_in_its_place() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Char('g'));
    let fault = crate::Fault::NotHere("nothing is here\u{1b}[2J".to_owned());
    stage.app.take(News::Fault(stage.app.wish(), fault));
    stage.shows(&["the endpoint does not have it: nothing is here\u{fffd}[2J"]);
    stage.press(KeyCode::Char('p'));
    assert!(!stage.text(SIZES[0]).contains("does not have it"));
}

#[test]
fn a_hostile_name_stays_a_name() {
    let mut stage = Stage::new();
    let query = ganger_observe::api::ProcessesQuery::default();
    let mut answer = stage.demo.processes(&query).unwrap();
    for process in &mut answer.processes {
        process.names = vec!["evil\u{1b}]0;x\u{7}\u{202e}\n".to_owned()];
        process.type_name = "\u{9b}2J".to_owned();
        process.pid += "\r\u{8}";
    }
    let wish = stage.app.wish();
    stage.app.take(News::Answer(
        wish,
        feed::Answer::Processes(answer, Vec::new()),
    ));
    stage.press(KeyCode::Enter);
    let mut text = stage.text(SIZES[1]);
    stage.press(KeyCode::Esc);
    text += &stage.text(SIZES[1]);
    assert!(text.contains("evil\u{fffd}]0;x"));
    assert!(!text.chars().any(|c| c != '\n' && crate::text::is_unsafe(c)));
}

#[test]
fn a_tiny_screen_says_what_it_needs_and_all_sizes_are_drawn() {
    let mut stage = Stage::new();
    assert!(stage.text((39, 20)).contains("ganger-top needs 40 × 10"));
    for view in View::ALL {
        stage.press(KeyCode::Char(view.key().unwrap()));
        for width in (1..60).chain([300]) {
            for height in [1, 2, 9, 10, 11, 40] {
                stage.buffer((width, height));
            }
        }
    }
}

#[test]
fn the_busy_come_first_where_they_are_counted() {
    let stage = Stage::new();
    let mut fresh = App::new("demo".to_owned());
    fresh.take(News::Snapshot(stage.demo.snapshot().unwrap()));
    assert_eq!(fresh.sort, crate::measure::Sort::Busy);
    fresh.key(KeyEvent::from(KeyCode::Char('s')));
    assert_eq!(
        fresh.sort,
        crate::measure::Sort::Mailbox,
        "the second counts nothing"
    );
    fresh.key(KeyEvent::from(KeyCode::Char('<')));
    fresh.key(KeyEvent::from(KeyCode::Char('s')));
    assert_eq!(
        fresh.sort,
        crate::measure::Sort::State,
        "a person has chosen"
    );
}
