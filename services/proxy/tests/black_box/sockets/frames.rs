//! What RFC 6455 says about frames, fragments, control frames and text, written byte by byte.

use simulator::Behaviour;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Socket, World, call, right, soon};

/// A masked frame; the mask is zero, which is one that is allowed.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(short @ 0..=125) => frame.push(0x80 | u8::try_from(short).expect("short")),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

async fn world() -> World {
    World::build().primary("a", Behaviour::Healthy).env("MAX_BODY_BYTES", "100KiB").start().await
}

/// Sends these bytes; the frames that come back, as first byte and payload, until the connection ends.
async fn exchange(world: &World, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut socket = Socket::open(world.proxy.address).await;
    let connection = socket.stream.get_mut();
    connection.write_all(bytes).await.expect("is sent");
    let mut heard = Vec::new();
    soon(connection.read_to_end(&mut heard)).await.expect("an end without a reset");
    let (mut frames, mut rest) = (Vec::new(), &heard[..]);
    while let [first, length, more @ ..] = rest {
        let (length, more) = match length {
            126 => (usize::from(u16::from_be_bytes([more[0], more[1]])), &more[2..]),
            127 => panic!("no long frame is expected"),
            short => (usize::from(*short), more),
        };
        frames.push((*first, more[..length].to_vec()));
        rest = &more[length..];
    }
    frames
}

/// The code of the close that answers these bytes.
async fn close_code(world: &World, bytes: &[u8]) -> Option<u16> {
    let frames = exchange(world, bytes).await;
    let (_, close) = frames.into_iter().find(|(first, _)| *first == 0x88)?;
    Some(u16::from_be_bytes([*close.first()?, *close.get(1)?]))
}

/// Kills: any breach of the protocol that is taken, or ended without its code.
#[tokio::test]
async fn breaches_are_closed_with_their_code() {
    let world = world().await;
    let unmasked = [0x81, 2, b'{', b'}'];
    for (what, bytes, code) in [
        ("a reserved bit", frame(0xc1, b"{}"), 1002),
        ("a reserved opcode", frame(0x83, b"{}"), 1002),
        ("a reserved control opcode", frame(0x8b, b""), 1002),
        ("a continuation of nothing", frame(0x80, b"{}"), 1002),
        ("a message inside another", [frame(0x01, b"{"), frame(0x81, b"}")].concat(), 1002),
        ("a fragmented ping", frame(0x09, b""), 1002),
        ("a ping too long", frame(0x89, &[b'x'; 126]), 1002),
        ("a frame without a mask", unmasked.to_vec(), 1002),
        ("a close with half a code", frame(0x88, &[3]), 1002),
        ("a close with a code that may not be sent", frame(0x88, &1006u16.to_be_bytes()), 1002),
        ("text that is no UTF-8", frame(0x81, &[b'"', 0xff, b'"']), 1007),
        ("text that is no UTF-8 over fragments", [frame(0x01, &[0xce]), frame(0x80, &[0x28])].concat(), 1007),
        ("a message too large", frame(0x81, &vec![b' '; 100 * 1024 + 1]), 1009),
        (
            "fragments too large",
            [frame(0x01, &vec![b' '; 60_000]), frame(0x80, &vec![b' '; 60_000])].concat(),
            1009,
        ),
    ] {
        assert_eq!(close_code(&world, &bytes).await, Some(code), "{what}");
    }
    assert_eq!(world.asked("a"), 0);
}

/// Kills: fragments that are not put together, or control frames that may not come between them.
#[tokio::test]
async fn fragments_and_control_frames_mix() {
    let world = world().await;
    let text = call(5).to_string();
    let (left, right_part) = text.as_bytes().split_at(9);
    let close = frame(0x88, &1000u16.to_be_bytes());
    let bytes = [
        frame(0x01, left),
        frame(0x89, b"are you there"),
        frame(0x00, b""),
        frame(0x8a, b"nobody asked"),
        frame(0x80, right_part),
    ]
    .concat();
    let mut socket = Socket::open(world.proxy.address).await;
    socket.stream.get_mut().write_all(&bytes).await.expect("is sent");
    let mut pong = [0; 15];
    soon(socket.stream.get_mut().read_exact(&mut pong)).await.expect("a pong");
    assert_eq!(&pong, b"\x8a\x0dare you there");
    assert_eq!(socket.hear().await, right(5));
    let frames = exchange(&world, &close).await;
    assert_eq!(frames, [(0x88, 1000u16.to_be_bytes().to_vec())]);
}

/// Kills: a close code that means "no code", sent as one.
#[tokio::test]
async fn a_close_without_a_code_is_answered_without_one() {
    let frames = exchange(&world().await, &frame(0x88, b"")).await;
    assert_eq!(frames, [(0x88, vec![])]);
}
