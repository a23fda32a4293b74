//! A TUN device: a network interface whose packets a process reads and writes.

use std::fs::File;
use std::io;

use rustix::ioctl::{Opcode, Setter, ioctl};

/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: Opcode = 0x4004_54ca;
/// Packets of IP, without a header before them: `IFF_TUN | IFF_NO_PI`.
const KIND: i16 = 0x0001 | 0x1000;

/// `struct ifreq` as this call reads it: 16 bytes of name, the flags, and room up to the 40 bytes of the whole.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// Makes an interface of that name, of at most 15 bytes, in the network namespace of the calling thread. Each read gives one packet,
/// each write sends one in. The interface goes with the file.
pub fn open(name: &str) -> io::Result<File> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: KIND, rest: [0; 22] };
    match request.name.get_mut(..name.len()) {
        Some(place) if name.len() < 16 => place.copy_from_slice(name.as_bytes()),
        Some(_) | None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long")),
    }
    set(&file, request)?;
    Ok(file)
}

#[expect(unsafe_code, reason = "an ioctl takes a bare pointer, and no safe form of this one is there")]
fn set(file: &File, request: Request) -> io::Result<()> {
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq` of 40 bytes at the pointer, and `Request` has that layout and size; the
    // setter owns it during the call. The file is the TUN driver's, as it was just opened by that name.
    Ok(unsafe { ioctl(file, Setter::<TUNSETIFF, Request>::new(request)) }?)
}

const _: () = assert!(size_of::<Request>() == 40);
