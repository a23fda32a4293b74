//! Sizes for people, in the unit that fits: `812 B`, `12.4 MiB`.

/// One decimal above a KiB. Rounded down, so that it never names more than there is.
#[must_use]
pub fn bytes(size: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if size < 1024 {
        return format!("{size} B");
    }
    let power = ((size.ilog2() / 10) as usize).min(UNITS.len());
    let unit = 1_u64 << (10 * power);
    let tenths = u128::from(size) * 10 / u128::from(unit);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power - 1])
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn the_unit_fits_and_nothing_is_rounded_up() {
        for (size, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1023.9 KiB"),
            (13_002_342, "12.4 MiB"),
            (10 << 30, "10.0 GiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }
}
