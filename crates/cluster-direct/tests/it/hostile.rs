//! Peers that do not keep to the protocol.

use crate::support::{COOKIE, Node, PATIENCE, Told, engine, name, pair, until};
use ganger_cluster::MAX_FRAME;
use ganger_cluster_direct::Reason;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// A peer without an engine.
pub(crate) struct Stranger {
    stream: TcpStream,
    /// Of the own frames, and of the node's, behind the handshake.
    codes: Option<[Codes; 2]>,
}

/// Seals and opens the frames of a direction, as the protocol does.
struct Codes {
    key: LessSafeKey,
    next: u64,
}

fn hmac(said: &[u8]) -> ring::hmac::Tag {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, COOKIE.as_bytes());
    ring::hmac::sign(&key, said)
}

impl Codes {
    fn new(side: &str, greetings: &[u8]) -> Self {
        let side = format!("ganger direct frames of the {side}");
        let key = hmac(&[side.as_bytes(), greetings].concat());
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref()).unwrap();
        Self {
            key: LessSafeKey::new(key),
            next: 0,
        }
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    /// Seals kind and body, encrypted, with the code.
    fn seal(&mut self, mut frame: Vec<u8>) -> Vec<u8> {
        let nonce = self.nonce();
        let sealed = (self.key).seal_in_place_append_tag(nonce, Aad::empty(), &mut frame);
        sealed.unwrap();
        frame
    }

    fn open(&mut self, mut sealed: Vec<u8>) -> Vec<u8> {
        let nonce = self.nonce();
        let opened = self.key.open_in_place(nonce, Aad::empty(), &mut sealed);
        opened.expect("a frame with the right code").to_vec()
    }
}

fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_le_bytes();
    [b"GNGR", &[1, kind][..], &length, body].concat()
}

/// Returns a greeting of a node in the default cluster.
pub(crate) fn greeting(name: &str, run: u8) -> Vec<u8> {
    let mut body = vec![9; 16];
    body.extend([run; 16]);
    for text in ["ganger", name, ""] {
        body.push(u8::try_from(text.len()).unwrap());
        body.extend(text.as_bytes());
    }
    packet(0, &body)
}

impl Stranger {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        Self::at(stream)
    }

    fn at(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            codes: None,
        }
    }

    /// Shakes hands as a node does.
    pub(crate) fn join(node: &Node, called: &str) -> Self {
        Self::join_as(node.address(), called, 1)
    }

    pub(crate) fn join_as(address: SocketAddr, called: &str, run: u8) -> Self {
        let mut stranger = Self::connect(address);
        let own = greeting(called, run);
        stranger.write(&own);
        let theirs = stranger.packet().unwrap();
        let greetings = [&own[..], &theirs].concat();
        let said = [b"ganger direct dialer", &greetings[..]].concat();
        stranger.write(&packet(1, hmac(&said).as_ref()));
        assert_eq!(stranger.packet().unwrap()[5], 1, "the node's own proof");
        let sides = ["dialer", "acceptor"];
        stranger.codes = Some(sides.map(|side| Codes::new(side, &greetings)));
        stranger
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the next packet of a handshake.
    pub(crate) fn packet(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 8];
        self.stream.read_exact(&mut head)?;
        let length = u16::from_le_bytes([head[6], head[7]]);
        let mut packet = head.to_vec();
        packet.resize(8 + usize::from(length), 0);
        self.stream.read_exact(&mut packet[8..])?;
        Ok(packet)
    }

    /// Waits until the node closes the connection. Returns how many bytes came before.
    pub(crate) fn until_closed(&mut self) -> usize {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
            _ => rest.len(),
        }
    }

    /// Reads the next frame: its kind and body.
    pub(crate) fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut sealed = vec![0; u32::from_le_bytes(length) as usize + 16];
        self.stream.read_exact(&mut sealed).unwrap();
        let [_, theirs] = self.codes.as_mut().expect("behind the handshake");
        let mut frame = theirs.open(sealed);
        let body = frame.split_off(1);
        (frame[0], body)
    }

    /// Returns the bytes of the next frame.
    fn next(&mut self, kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 1).unwrap().to_le_bytes();
        let frame = [&[kind][..], body].concat();
        let sealed = match &mut self.codes {
            Some([own, _]) => own.seal(frame),
            None => [frame, vec![0; 16]].concat(),
        };
        [&length[..], &sealed].concat()
    }

    pub(crate) fn send(&mut self, kind: u8, body: &[u8]) {
        let frame = self.next(kind, body);
        self.write(&frame);
    }

    pub(crate) fn read_in_the_background(self) {
        thread::spawn(move || {
            let mut stream = self.stream;
            io::copy(&mut stream, &mut io::sink())
        });
    }
}

/// The kind of frames of a session.
const SESSION: u8 = 0;

/// Returns whether a packet is a refusal with the code of this reason.
fn is_refusal(packet: &[u8], code: u8) -> bool {
    packet[5] == 2 && packet[8] == code
}

// pins: H2
#[test]
fn a_stranger_with_the_cookie_is_a_peer() {
    let alpha = Node::start("alpha", engine());
    let mut beta = Stranger::join(&alpha, "beta");
    beta.send(SESSION, b"hello");
    let expected = Told::Frame(name("beta"), "hello".into());
    drop(
        alpha
            .inbox
            .until("a frame", |told| told.contains(&expected)),
    );
}

/// Sends a frame before the proof: the frame is not heard, and ends the connection.
// pins: H2
#[test]
fn nothing_is_heard_before_the_proof() {
    let alpha = Node::start("alpha", engine());
    let mut beta = Stranger::connect(alpha.address());
    beta.write(&greeting("beta", 1));
    beta.packet().unwrap();
    beta.send(SESSION, b"hello");
    let refusal = beta.packet().unwrap();
    assert!(is_refusal(&refusal, 7), "{refusal:?}");
    beta.until_closed();
    assert_eq!(alpha.inbox.count(|_| true), 0);
    assert!(alpha.engine.connected().is_empty());
    let refused = alpha.until_refused(Reason::Malformed, false);
    assert_eq!(refused.name, Some(name("beta")));
}

// pins: H2
#[test]
fn a_proof_of_another_connection_is_wrong() {
    let alpha = Node::start("alpha", engine());
    let mut beta = Stranger::connect(alpha.address());
    let own = greeting("beta", 1);
    beta.write(&own);
    let theirs = beta.packet().unwrap();
    let said = [b"ganger direct dialer", &own[..], &theirs].concat();
    let proof = packet(1, hmac(&said).as_ref());
    beta.write(&proof);
    assert_eq!(beta.packet().unwrap()[5], 1);
    // The same bytes once more.
    let mut copy = Stranger::connect(alpha.address());
    copy.write(&own);
    copy.packet().unwrap();
    copy.write(&proof);
    let refusal = copy.packet().unwrap();
    assert!(is_refusal(&refusal, 1), "{refusal:?}");
    alpha.until_refused(Reason::Cookie, false);
}

// pins: H2
// case: 35
#[test]
fn garbage_gets_a_refusal_and_the_end() {
    let alpha = Node::start("alpha", engine());
    for garbage in [
        "GET / HTTP/1.1\r\n\r\n",
        "\0\0\0\0\0\0\0\0",
        "GNGRGNGRGNGRGNGR",
    ] {
        let mut stranger = Stranger::connect(alpha.address());
        stranger.write(garbage.as_bytes());
        let refusal = stranger.packet().unwrap();
        assert_eq!(refusal[5], 2, "{refusal:?}");
        stranger.stream.shutdown(Shutdown::Write).unwrap();
        stranger.until_closed();
    }
    // The alpha of another version says what it is.
    let mut later = Stranger::connect(alpha.address());
    later.write(b"GNGR\x02\0\0\0");
    let refusal = later.packet().unwrap();
    assert!(is_refusal(&refusal, 5), "{refusal:?}");
    alpha.until_refused(Reason::Version, false);
}

/// Sends frames with a wrong length, code or kind: each ends the connection. A length over the
/// limit does so at the head, before any byte of the body.
// pins: H2
// case: 35
#[test]
fn malformed_frames_end_the_connection() {
    let alpha = Node::start("alpha", engine());
    let too_long = |_: &mut Stranger| {
        let length = u32::try_from(MAX_FRAME + 2).unwrap();
        length.to_le_bytes().to_vec()
    };
    let empty = |_: &mut Stranger| vec![0; 4];
    let wrong = |it: &mut Stranger| {
        let mut wrong = it.next(SESSION, b"hello");
        *wrong.last_mut().unwrap() ^= 1;
        wrong
    };
    let left_out = |it: &mut Stranger| {
        it.next(SESSION, b"hello");
        it.next(SESSION, b"hello")
    };
    let unknown = |it: &mut Stranger| it.next(99, b"");
    for (run, malformed) in (1..).zip([too_long, empty, wrong, left_out, unknown]) {
        alpha.inbox.clear();
        let mut beta = Stranger::join_as(alpha.address(), "beta", run);
        let malformed = malformed(&mut beta);
        beta.write(&malformed);
        beta.until_closed();
        let vanished = Told::Vanished(name("beta"));
        drop(
            alpha
                .inbox
                .until("the end", |told| told.contains(&vanished)),
        );
        assert!(alpha.inbox.frames().is_empty());
    }
    alpha.until_refused(Reason::Malformed, false);
}

/// Repeats a frame: the connection ends, and the frame is heard once.
// pins: H1
#[test]
fn a_repeated_frame_ends_the_connection() {
    let alpha = Node::start("alpha", engine());
    let mut beta = Stranger::join(&alpha, "beta");
    let hello = beta.next(SESSION, b"hello");
    beta.write(&[&hello[..], &hello].concat());
    beta.until_closed();
    alpha.until_refused(Reason::Malformed, false);
    assert_eq!(alpha.inbox.frames(), ["hello"]);
}

/// Lets a program at a seed's address pass the handshake on, and then speak itself.
// pins: H1, H2
#[test]
fn a_handshake_that_is_passed_on_lets_nobody_speak() {
    let alpha = Node::start("alpha", engine());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let seed = listener.local_addr().unwrap().to_string();
    let _beta = Node::start("beta", engine().seeds([seed]));
    let mut near = Stranger::at(listener.accept().unwrap().0);
    let mut far = Stranger::connect(alpha.address());
    // Two greetings, and two proofs.
    for _ in 0..2 {
        far.write(&near.packet().unwrap());
        near.write(&far.packet().unwrap());
    }
    let appeared = Told::Appeared(name("beta"));
    drop((alpha.inbox).until("the node", |told| told.contains(&appeared)));
    far.send(SESSION, b"forged");
    far.until_closed();
    alpha.until_refused(Reason::Malformed, false);
    assert!(alpha.inbox.frames().is_empty());
}

/// Ends the writes of a peer that still reads: the peer is gone, and its connection is closed.
// pins: H2
#[test]
fn a_half_closed_connection_is_an_end() {
    let alpha = Node::start("alpha", engine());
    let mut beta = Stranger::join(&alpha, "beta");
    beta.send(SESSION, b"hello");
    beta.stream.shutdown(Shutdown::Write).unwrap();
    beta.until_closed();
    let told = alpha.inbox.until("the end", |told| {
        told.contains(&Told::Vanished(name("beta")))
    });
    assert!(told.contains(&Told::Frame(name("beta"), "hello".into())));
}

/// Floods a node with connections without a proof: the oldest are closed, and a node that hurries
/// gets through. A connection that says nothing ends with the time for handshakes.
// pins: H2
#[test]
fn a_flood_of_strangers_is_bounded_and_keeps_no_node_out() {
    let limit = 8;
    let alpha = Node::start("alpha", engine().half_open_limit(limit));
    let mut flood: Vec<_> = (0..3 * limit)
        .map(|_| Stranger::connect(alpha.address()))
        .collect();
    for oldest in &mut flood[..2 * limit] {
        oldest.until_closed();
    }
    assert!(alpha.engine.half_open() <= limit);
    let beta = Node::start("beta", engine().seeds(alpha.seed()));
    beta.until_connected(&alpha);
}

// pins: H2
#[test]
fn a_handshake_has_a_time_limit() {
    let alpha = Node::start("alpha", engine().handshake_limit(Duration::from_millis(20)));
    let mut silent = Stranger::connect(alpha.address());
    let mut half = Stranger::connect(alpha.address());
    half.write(&greeting("beta", 1)[..20]);
    silent.until_closed();
    half.until_closed();
    until("no half-open connection", || alpha.engine.half_open() == 0);
    alpha.until_refused(Reason::Unfinished, false);
}

/// Sends garbage after the handshake of a peer: another peer takes no harm.
// pins: H2
#[test]
fn a_hostile_peer_harms_itself_alone() {
    let (alpha, beta) = pair(engine(), engine());
    let mut gamma = Stranger::join(&alpha, "gamma");
    gamma.write(&[0xff; 100]);
    gamma.until_closed();
    assert!(beta.send(&alpha, "hello"));
    let expected = Told::Frame(beta.name.clone(), "hello".into());
    drop(
        alpha
            .inbox
            .until("a frame", |told| told.contains(&expected)),
    );
    assert_eq!(
        alpha.inbox.count(|it| *it == Told::Vanished(name("beta"))),
        0
    );
}
