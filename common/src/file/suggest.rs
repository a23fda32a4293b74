//! "Did you mean".

/// The candidate that a mistyped word probably meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = plain(word);
    let allowed = match word.len() {
        0..=2 => return None,
        3..=4 => 1,
        5..=8 => 2,
        9.. => 3,
    };
    candidates
        .into_iter()
        // Also keeps the cost of a very long word at nothing.
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (strsim::damerau_levenshtein(&word, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Case and the choice between `-` and `_` are the smallest of mistakes.
fn plain(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}
