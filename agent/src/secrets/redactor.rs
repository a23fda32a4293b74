//! Replaces secret values in a stream, also over the borders of its pieces.
//!
//! What is kept back is never longer than the longest form, and only while it could become one: a line without the begin of
//! a secret at its end goes through at once.

use aho_corasick::{AhoCorasick, MatchKind};

use super::Secrets;
use super::forms::forms;

/// For one stream.
#[derive(Clone, Debug)]
pub struct Redactor {
    known: Option<Known>,
    held: Vec<u8>,
    redacted: u64,
}

#[derive(Clone, Debug)]
struct Known {
    finder: AhoCorasick,
    forms: Vec<Vec<u8>>,
    /// What stands in the place of each form.
    names: Vec<String>,
    longest: usize,
}

impl Redactor {
    /// Of all these.
    #[must_use]
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Secrets>) -> Self {
        let mut all: Vec<(Vec<u8>, String)> = Vec::new();
        for (name, value) in secrets.into_iter().flat_map(Secrets::values) {
            all.extend(forms(value).into_iter().map(|form| (form, format!("[redacted {name}]"))));
        }
        // A form of few characters, as of base64 of six bytes, would be found in other text: never shorter than a value may be.
        all.retain(|(form, _)| form.len() >= super::SHORTEST);
        let (forms, names): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let longest = forms.iter().map(Vec::len).max().unwrap_or_default();
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
        let known = (longest > 0).then(|| {
            let finder = built.expect("some hundred patterns of at most some hundred kilobytes fit the automaton");
            Known { finder, forms, names, longest }
        });
        Self { known, held: Vec::new(), redacted: 0 }
    }

    /// How many values were replaced.
    pub(crate) fn redacted(&self) -> u64 {
        self.redacted
    }

    /// Takes the next piece and gives what may be written now.
    pub(crate) fn next(&mut self, piece: &[u8]) -> Vec<u8> {
        self.pass(piece, false)
    }

    /// Gives the rest.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        self.pass(&[], true)
    }

    /// A whole text.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut own = Self { known: self.known.clone(), held: Vec::new(), redacted: 0 };
        String::from_utf8_lossy(&own.pass(text.as_bytes(), true)).into_owned()
    }

    fn pass(&mut self, piece: &[u8], is_last: bool) -> Vec<u8> {
        let Some(known) = &self.known else { return piece.to_vec() };
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let mut clean = Vec::with_capacity(text.len());
        let mut at = 0;
        let undecided_from = |at| if is_last { text.len() } else { known.undecided(&text, at) };
        let mut undecided = undecided_from(0);
        loop {
            match known.finder.find(aho_corasick::Input::new(&text).range(at..)) {
                Some(found) if found.start() < undecided => {
                    clean.extend_from_slice(&text[at..found.start()]);
                    clean.extend_from_slice(known.names[found.pattern().as_usize()].as_bytes());
                    self.redacted += 1;
                    at = found.end();
                    if at > undecided {
                        undecided = undecided_from(at);
                    }
                }
                Some(_) | None => break,
            }
        }
        clean.extend_from_slice(&text[at..undecided]);
        self.held = text.split_off(undecided);
        clean
    }
}

impl Known {
    /// Where the first form may begin whose end is yet to come: no match before it can change any more.
    fn undecided(&self, text: &[u8], from: usize) -> usize {
        let earliest = from.max(text.len().saturating_sub(self.longest - 1));
        let may_go_on =
            |at: &usize| self.forms.iter().any(|form| form.len() > text.len() - at && form.starts_with(&text[*at..]));
        (earliest..text.len()).find(may_go_on).unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secrets::Sources;

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        let folder = std::env::temp_dir().join(format!("holdfast-redactor-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        let files = values.iter().map(|(name, value)| {
            let path = folder.join(name);
            std::fs::write(&path, value).unwrap();
            ((*name).to_owned(), path)
        });
        let sources = Sources { files: files.collect(), variables: Vec::new() };
        let secrets = sources.read().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        secrets
    }

    fn pieces(redactor: &Redactor, text: &[u8], cuts: &[usize]) -> (String, u64) {
        let mut redactor = redactor.clone();
        let mut clean = Vec::new();
        let mut rest = text;
        for cut in cuts {
            let (piece, more) = rest.split_at(*cut % (rest.len() + 1));
            clean.extend(redactor.next(piece));
            rest = more;
        }
        clean.extend(redactor.next(rest));
        clean.extend(redactor.end());
        (String::from_utf8_lossy(&clean).into_owned(), redactor.redacted())
    }

    #[test]
    fn each_form_is_replaced_by_its_name() {
        let redactor = Redactor::of(&[secrets(&[("db", "s3cret/pass word\n")])]);
        for form in ["s3cret/pass word", "czNjcmV0L3Bhc3Mgd29yZA==", "s3cret%2Fpass%20word", "s3cret%2fpass%20word"] {
            let clean = redactor.text(&format!("a {form} b"));
            assert!(clean.starts_with("a [redacted db]") && clean.ends_with(" b"), "{clean}");
        }
        // "user:" before it: another place in the group of three.
        let clean = redactor.text("Basic dXNlcjpzM2NyZXQvcGFzcyB3b3Jk");
        assert!(clean.contains("[redacted db]") && !clean.contains("zM2NyZXQ"), "{clean}");
    }

    #[test]
    fn text_that_begins_no_secret_is_not_kept_back() {
        let mut redactor = Redactor::of(&[secrets(&[("db", "s3cret-value")])]);
        assert_eq!(redactor.next(b"a line\n"), b"a line\n");
        assert_eq!(redactor.next(b"s3c"), b"");
        assert_eq!(redactor.next(b"ond\n"), b"s3cond\n");
        assert_eq!(redactor.next(b"s3cret-val"), b"");
        assert_eq!(redactor.next(b"ue\n"), b"[redacted db]\n");
        assert_eq!((redactor.redacted(), redactor.end()), (1, Vec::new()));
    }

    #[test]
    fn a_longer_secret_wins_over_one_that_it_contains() {
        let redactor = Redactor::of(&[secrets(&[("short", "abcdef"), ("long", "abcdefghij")])]);
        assert_eq!(redactor.text("abcdefghij abcdefg"), "[redacted long] [redacted short]g");
    }

    #[test]
    fn lines_of_a_key_are_secrets_of_their_own() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n";
        let redactor = Redactor::of(&[secrets(&[("key", key)])]);
        assert_eq!(redactor.text("got kqhkiG9w0BAQEF\r\n"), "got [redacted key]\r\n");
        assert_eq!(redactor.text("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
    }

    #[test]
    fn what_is_kept_back_is_never_longer_than_a_form() {
        let mut redactor = Redactor::of(&[secrets(&[("db", "aaaaaaaaaaaaaaaaaaab")])]);
        for _ in 0..100 {
            redactor.next(&[b'a'; 4096]);
            assert!(redactor.held.len() < 64, "{}", redactor.held.len());
        }
    }

    proptest! {
        /// However a text is cut, what comes out is the same, and no secret is in it.
        #[test]
        fn cuts_change_nothing(
            parts in proptest::collection::vec("(secret|secretsecret|c2VjcmV0LXZhbHVl|secret-value|[a-c-]{0,4}|se|cret-)", 0..12),
            cuts in proptest::collection::vec(0usize..40, 0..12),
        ) {
            let redactor = Redactor::of(&[secrets(&[("one", "secret-value"), ("two", "secretsecret")])]);
            let text = parts.concat();
            let whole = pieces(&redactor, text.as_bytes(), &[]);
            prop_assert_eq!(&pieces(&redactor, text.as_bytes(), &cuts), &whole);
            prop_assert!(!whole.0.contains("secret-value") && !whole.0.contains("secretsecret"));
        }
    }
}
