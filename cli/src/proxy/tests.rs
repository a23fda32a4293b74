use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const BOUND: Duration = Duration::from_secs(10);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// A proxy before a listener, and both ends of connections through it.
struct World {
    upstream: TcpListener,
    proxy: Proxy,
}

impl World {
    async fn new() -> Self {
        let upstream = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = Proxy::start(upstream.local_addr().expect("bound")).await.expect("a port");
        Self { upstream, proxy }
    }

    async fn dial(&self) -> TcpStream {
        within("dial", TcpStream::connect(self.proxy.address())).await.expect("the proxy accepts")
    }

    async fn pair(&self) -> (TcpStream, TcpStream) {
        let client = self.dial().await;
        let (server, _) = within("accept", self.upstream.accept()).await.expect("the proxy dials");
        (client, server)
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    within("send", stream.write_all(text.as_bytes())).await.expect("an open connection");
}

async fn receive(stream: &mut TcpStream, text: &str) {
    let mut bytes = vec![0; text.len()];
    within(text, stream.read_exact(&mut bytes)).await.expect("an open connection");
    assert_eq!(String::from_utf8_lossy(&bytes), text);
}

async fn is_reset(stream: &mut TcpStream) {
    let error = within("reset", stream.read_u8()).await.expect_err("nothing more to read");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

async fn is_ended(stream: &mut TcpStream) {
    let error = within("end", stream.read_u8()).await.expect_err("nothing more to read");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

/// Nothing has arrived by the time that something else has come all the way through the proxy.
async fn has_nothing(stream: &TcpStream, after: &mut (TcpStream, TcpStream)) {
    send(&mut after.0, "?").await;
    receive(&mut after.1, "?").await;
    let error = stream.try_read(&mut [0; 8]).expect_err("nothing has arrived");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// For what can only be seen by its absence while nothing at all comes through: everything else had its turns.
async fn stay_quiet(stream: &TcpStream) {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let error = stream.try_read(&mut [0; 8]).expect_err("nothing has arrived");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn carries_bytes_and_ends_both_ways() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    send(&mut client, "hello").await;
    receive(&mut server, "hello").await;
    send(&mut server, "welcome").await;
    receive(&mut client, "welcome").await;
    client.shutdown().await.expect("open");
    is_ended(&mut server).await;
    send(&mut server, "still here").await;
    receive(&mut client, "still here").await;
    drop(server);
    is_ended(&mut client).await;
    within("closed", world.proxy.until_open(0)).await;
}

#[tokio::test]
async fn carries_much_with_a_slow_reader() {
    let world = World::new().await;
    let (client, mut server) = world.pair().await;
    let sent: Vec<u8> = (0..8_u32 * 1024 * 1024).map(|n| (n % 251) as u8).collect();
    let (mut read, mut write) = client.into_split();
    let copy = sent.clone();
    let writer = tokio::spawn(async move {
        write.write_all(&copy).await.expect("open");
        write.shutdown().await.expect("open");
    });
    let mut received = Vec::new();
    within("8 MiB", server.read_to_end(&mut received)).await.expect("open");
    assert!(received == sent);
    writer.await.expect("no panic");
    drop(server);
    assert_eq!(within("end", read.read(&mut [0])).await.expect("an orderly end"), 0);
}

#[tokio::test]
async fn a_cut_resets_and_refuses_until_healed() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    for _ in 0..3 {
        within("cut", world.proxy.cut()).await;
        is_reset(&mut client).await;
        is_reset(&mut server).await;
        let refused = TcpStream::connect(world.proxy.address()).await.expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        within("heal", world.proxy.heal()).await;
        (client, server) = world.pair().await;
        send(&mut client, "back").await;
        receive(&mut server, "back").await;
    }
}

#[tokio::test]
async fn a_reset_hits_what_is_open_and_nothing_later() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    world.proxy.reset();
    is_reset(&mut client).await;
    is_reset(&mut server).await;
    let (mut client, mut server) = world.pair().await;
    send(&mut client, "next").await;
    receive(&mut server, "next").await;
}

#[tokio::test]
async fn a_black_hole_swallows_everything_and_resets_what_lost_bytes() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    let mut untouched = world.pair().await;
    world.proxy.black_hole(Ways::Both);
    send(&mut client, "lost").await;
    send(&mut server, "lost").await;
    // A connection made into the dark is accepted and heard by nobody; its reset after the healing shows that it was.
    let mut blind = world.dial().await;
    send(&mut blind, "anybody?").await;
    within("open", world.proxy.until_open(3)).await;
    stay_quiet(&client).await;
    within("heal", world.proxy.heal()).await;
    for stream in [&mut client, &mut server, &mut blind] {
        is_reset(stream).await;
    }
    send(&mut untouched.0, "whole").await;
    receive(&mut untouched.1, "whole").await;
    // The upstream's next connection is a new one, not the blind one.
    let (mut client, mut server) = world.pair().await;
    send(&mut client, "seen").await;
    receive(&mut server, "seen").await;
}

#[tokio::test]
async fn a_one_way_black_hole_lets_the_other_way_through() {
    for ways in [Ways::Up, Ways::Down] {
        let world = World::new().await;
        let (client, server) = world.pair().await;
        let (mut sender, mut receiver) = if ways == Ways::Up { (client, server) } else { (server, client) };
        let other = world.pair().await;
        let mut other = if ways == Ways::Up { (other.1, other.0) } else { other };
        world.proxy.black_hole(ways);
        send(&mut sender, "lost").await;
        has_nothing(&receiver, &mut other).await;
        send(&mut receiver, "seen").await;
        receive(&mut sender, "seen").await;
        within("heal", world.proxy.heal()).await;
        is_reset(&mut sender).await;
        is_reset(&mut receiver).await;
        send(&mut other.1, "whole").await;
        receive(&mut other.0, "whole").await;
    }
}

#[tokio::test]
async fn an_end_or_a_reset_into_the_dark_is_not_heard_until_contact_returns() {
    for reset in [false, true] {
        let world = World::new().await;
        let (client, mut server) = world.pair().await;
        let other = world.pair().await;
        let mut other = (other.1, other.0);
        world.proxy.black_hole(Ways::Up);
        if reset {
            client.set_zero_linger().expect("a socket");
        }
        drop(client);
        has_nothing(&server, &mut other).await;
        within("heal", world.proxy.heal()).await;
        is_reset(&mut server).await;
    }
}

#[tokio::test]
async fn a_stall_delivers_late_and_in_order() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    let other = world.pair().await;
    let mut other = (other.1, other.0);
    world.proxy.stall(Ways::Up);
    send(&mut client, "one ").await;
    send(&mut client, "two ").await;
    has_nothing(&server, &mut other).await;
    send(&mut server, "down").await;
    receive(&mut client, "down").await;
    within("heal", world.proxy.heal()).await;
    send(&mut client, "three").await;
    receive(&mut server, "one two three").await;
}

#[tokio::test]
async fn a_delay_holds_every_byte_back_alike() {
    const DELAY: Duration = Duration::from_millis(150);
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    world.proxy.delay(DELAY);
    let start = Instant::now();
    for _ in 0..50 {
        send(&mut client, "0123456789").await;
    }
    receive(&mut server, &"0123456789".repeat(50)).await;
    let one_way = start.elapsed();
    // Never earlier; and not one delay after the other, which would be 7.5 s.
    assert!(one_way >= DELAY && one_way < DELAY * 25, "{one_way:?}");
    send(&mut server, "back").await;
    receive(&mut client, "back").await;
    assert!(start.elapsed() >= DELAY * 2);
    world.proxy.delay(Duration::from_secs(3600));
    send(&mut client, "held").await;
    within("heal", world.proxy.heal()).await;
    receive(&mut server, "held").await;
}

#[tokio::test]
async fn a_half_close_ends_one_direction_once() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    world.proxy.half_close(Ways::Down);
    is_ended(&mut client).await;
    send(&mut client, "up").await;
    receive(&mut server, "up").await;
    send(&mut server, "into nothing").await;
    drop(server);
    let (mut client, mut server) = world.pair().await;
    send(&mut server, "whole").await;
    receive(&mut client, "whole").await;
}

#[tokio::test]
async fn connections_end_in_good_order_at_an_age_or_after_a_silence() {
    let world = World::new().await;
    world.proxy.recycle(None, Some(Duration::from_millis(200)));
    let (mut client, mut server) = world.pair().await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        send(&mut client, "talk").await;
        receive(&mut server, "talk").await;
        tokio::task::yield_now().await;
    }
    is_ended(&mut client).await;
    is_ended(&mut server).await;
    world.proxy.recycle(Some(Duration::from_millis(200)), None);
    let (mut client, mut server) = world.pair().await;
    let begun = Instant::now();
    while client.write_all(b"talk").await.is_ok() && server.read_exact(&mut [0; 4]).await.is_ok() {
        assert!(begun.elapsed() < BOUND, "it never ends");
    }
    assert!(begun.elapsed() >= Duration::from_millis(200));
    world.proxy.recycle(None, None);
    let (mut client, mut server) = world.pair().await;
    send(&mut client, "whole").await;
    receive(&mut server, "whole").await;
}

#[tokio::test]
async fn an_upstream_that_is_gone_is_a_reset_and_a_redirect_finds_the_new_one() {
    let World { upstream, proxy } = World::new().await;
    drop(upstream);
    let mut client = TcpStream::connect(proxy.address()).await.expect("the proxy accepts");
    is_reset(&mut client).await;
    let upstream = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    proxy.redirect(upstream.local_addr().expect("bound"));
    let world = World { upstream, proxy };
    let (mut client, mut server) = world.pair().await;
    send(&mut client, "found").await;
    receive(&mut server, "found").await;
}

#[tokio::test]
async fn the_last_control_ends_the_proxy() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    let address = world.proxy.address();
    let clone = world.proxy.clone();
    drop(world.proxy);
    send(&mut client, "on").await;
    receive(&mut server, "on").await;
    drop(clone);
    is_reset(&mut client).await;
    is_reset(&mut server).await;
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    within("refused", refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_open_after_many_cuts() {
    let world = World::new().await;
    for round in 0..50 {
        let mut pairs = Vec::new();
        for _ in 0..5 {
            pairs.push(world.pair().await);
        }
        within("cut", world.proxy.cut()).await;
        assert_eq!(world.proxy.open(), 0, "round {round}");
        within("heal", world.proxy.heal()).await;
        for (client, server) in &mut pairs {
            is_reset(client).await;
            is_reset(server).await;
        }
    }
}
