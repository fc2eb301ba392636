use super::*;

fn message(number: u64) -> Entry {
    let event = Event::Message(Message::new("number", number));
    Entry::of_event(&event).unwrap()
}

/// Opens an account with these entries accepted.
fn account(entries: &[Entry]) -> Account {
    let mut account = Account::default();
    account.open();
    entries.iter().for_each(|entry| account.accept(*entry));
    account
}

fn promise(result: Result<(), Violation>) -> &'static str {
    result.expect_err("nothing was found").0
}

#[test]
fn messages_that_differ_are_told_apart() {
    assert_eq!(message(1), message(1));
    assert_ne!(message(1), message(2));
    let of = |message: Message| Entry::of_event(&Event::Message(message)).unwrap();
    assert_ne!(of(Message::new("topic", 1_u64)), message(1));
    let source = "{sim|7}".parse().unwrap();
    assert_ne!(
        of(Message::new("number", 1_u64).from_pid(source)),
        message(1)
    );
}

// pins: P4, R4
#[test]
fn what_is_shown_out_of_order_twice_or_never_is_found() {
    let [one, two, three] = [1, 2, 3].map(message);
    let mut account = account(&[one, two, three]);
    account.show(vec![one, two]).unwrap();
    account.settle(vec![two]).unwrap();
    account.show(vec![two, three]).unwrap();
    account.settle(vec![]).unwrap();
    assert_eq!((account.tally.messages, account.tally.handled), (3, 3));
    let all = [one, two, three];
    for shown in [
        vec![two],
        vec![one, three],
        vec![one, one],
        vec![one, two, three, three],
    ] {
        assert_eq!(promise(self::account(&all).show(shown)), "R4");
    }
    let mut account = self::account(&all);
    account.show(vec![one, two]).unwrap();
    assert_eq!(promise(account.settle(vec![two, one])), "P4");
    let mut account = self::account(&all);
    account.show(vec![one]).unwrap();
    account.settle(vec![one]).unwrap();
    assert_eq!(
        promise(account.show(vec![two])),
        "P4",
        "what was left is gone"
    );
}

// pins: P4
#[test]
fn system_events_are_shown_first_and_an_upgrade_waits_for_those_before_it() {
    let (one, two) = (message(1), message(2));
    let with = || account(&[one, Entry::Cancel, Entry::Upgrade, two, Entry::Cancel]);
    assert_eq!(promise(with().show(vec![one, Entry::Cancel])), "P4");
    assert_eq!(promise(with().take_upgrade()), "P4");
    let mut account = with();
    account.show(vec![Entry::Cancel, one]).unwrap();
    account.settle(vec![]).unwrap();
    assert_eq!(promise(account.show(vec![Entry::Cancel])), "R4");
    let mut account = with();
    account.show(vec![Entry::Cancel]).unwrap();
    account.settle(vec![]).unwrap();
    account.take_upgrade().unwrap();
    account.show(vec![Entry::Cancel, one, two]).unwrap();
}

// pins: P6, P7
#[test]
fn a_completion_is_shown_once_and_not_after_an_upgrade() {
    let (first, second) = (Entry::Completion(7, 0), Entry::Completion(8, 1));
    let asked = || {
        let mut account = account(&[]);
        account.begin_yield(0, 7).unwrap();
        account.begin_yield(1, 8).unwrap();
        for entry in [first, first, second] {
            account.accept(entry);
        }
        account
    };
    let mut account = asked();
    account.show(vec![first, second]).unwrap();
    account.settle(vec![]).unwrap();
    assert_eq!((account.tally.delivered, account.tally.stale), (2, 1));
    assert_eq!(promise(asked().show(vec![first, first])), "R4");
    assert_eq!(promise(asked().begin_yield(1, 9)), "P7");
    let mut account = asked();
    account.show(vec![first]).unwrap();
    account.settle(vec![first]).unwrap();
    account.upgrade();
    assert_eq!(promise(account.show(vec![second])), "R4");
    assert_eq!(account.tally.stale, 3);
}

// pins: R2
#[test]
fn what_is_lost_with_the_end_is_found() {
    let (one, two) = (message(1), message(2));
    let ended = |dropped: &[Entry]| {
        let mut account = account(&[one, Entry::Cancel, two]);
        account.show(vec![Entry::Cancel, one]).unwrap();
        account.settle(vec![one]).unwrap();
        let result = account.drop_rest(dropped.to_vec());
        (result, account.tally.undelivered)
    };
    assert_eq!(ended(&[two, one]), (Ok(()), 2));
    assert_eq!(promise(ended(&[two]).0), "R2");
    assert_eq!(promise(ended(&[one, two, two]).0), "R2");
}

#[test]
fn late_completions_may_have_been_dropped_before() {
    for is_there in [false, true] {
        let mut account = account(&[]);
        account.begin_yield(0, 7).unwrap();
        let completion = Entry::Completion(7, 0);
        account.accept(completion);
        account.accept(completion);
        account.show(vec![completion]).unwrap();
        account.settle(vec![]).unwrap();
        let dropped = if is_there { vec![completion] } else { vec![] };
        account.drop_rest(dropped).unwrap();
        assert_eq!((account.tally.delivered, account.tally.stale), (1, 1));
    }
    // The first has been left, and the second comes too late.
    let mut account = account(&[]);
    account.begin_yield(0, 7).unwrap();
    let completion = Entry::Completion(7, 0);
    account.accept(completion);
    account.show(vec![completion]).unwrap();
    account.settle(vec![completion]).unwrap();
    account.accept(completion);
    account.drop_rest(vec![completion]).unwrap();
    assert_eq!((account.tally.delivered, account.tally.stale), (0, 2));
}

// pins: P2
#[test]
fn an_end_without_close_or_with_two_is_found() {
    let mut account = account(&[]);
    assert_eq!(promise(account.end()), "P2");
    account.close().unwrap();
    account.end().unwrap();
    assert_eq!(promise(account.close()), "P2");
    let mut account = self::account(&[]);
    account.show(vec![]).unwrap();
    assert_eq!(promise(account.close()), "P2");
}
