//! The forms in which a value may turn up.

/// The value, its base64 in either alphabet at each of the three places in a group of three bytes, and percent-encoded. Of base64
/// only the characters that follow from the value alone.
pub(super) fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    for alphabet in [STANDARD, URL] {
        forms.extend((0..3).map(|place| base64(value, place, alphabet)));
    }
    for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
        forms.push(percent(value, digits));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Of a longer text in base64 the characters that `value` alone decides, where it begins `place` bytes into a group of three.
fn base64(value: &[u8], place: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bit = |at: usize| -> u8 {
        let byte = value[at / 8 - place];
        byte >> (7 - at % 8) & 1
    };
    let first = (place * 8).div_ceil(6);
    let end = (place + value.len()) * 8 / 6;
    (first..end)
        .map(|char| {
            let number = (char * 6..char * 6 + 6).fold(0, |number, at| number << 1 | bit(at));
            alphabet[usize::from(number)]
        })
        .collect()
}

fn percent(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(*byte);
        } else {
            text.extend([b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_wherever_the_value_begins_in_it() {
        // Made with base64(1): printf '%s' "<prefix>hunter2-hunter2<rest>" | base64
        let encoded =
            [("aHVudGVyMi1odW50ZXIy", 0), ("eGh1bnRlcjItaHVudGVyMnk=", 1), ("eHhodW50ZXIyLWh1bnRlcjJ5eQ==", 2)];
        for (text, place) in encoded {
            let form = String::from_utf8(base64(b"hunter2-hunter2", place, STANDARD)).expect("letters");
            assert!(text.contains(&form) && form.len() >= 18, "{text} has no {form}");
        }
    }

    #[test]
    fn percent_encoding_has_its_reserved_characters_encoded() {
        assert_eq!(percent(b"a/b c~", b"0123456789ABCDEF"), b"a%2Fb%20c~");
        assert_eq!(percent(b"a/b+", b"0123456789abcdef"), b"a%2fb%2b");
    }
}
