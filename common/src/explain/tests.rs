use super::*;

fn is_useful(explanation: Explanation, of: &str) {
    let Explanation { what, still_true, next } = explanation;
    for text in [what, still_true, next] {
        assert!(
            text.ends_with('.') && text.starts_with(char::is_uppercase) || text.starts_with("holdfast"),
            "{of}: {text}"
        );
        assert!(!text.contains("  ") && !text.contains('\n'), "{of}: {text}");
    }
}

#[test]
fn every_code_is_explained_and_no_two_alike() {
    let mut seen = std::collections::BTreeMap::new();
    for code in Code::ALL {
        let explanation = explain(*code);
        is_useful(explanation, &code.to_string());
        assert_eq!(seen.insert(explanation.what, *code), None, "{code} has the text of another code");
    }
}

#[test]
fn every_state_stage_disposition_and_reason_is_explained() {
    let words = "
        queued active succeeded failed cancelled uncertain held hold superseded
        offered running stopped declined lapsed interrupted resolved
        pending permitted started applied unknown not_started carried
        requested recorded delivered acted observed
        accepted duplicate filed
        superseded_fence lease_expired attempt_terminal step_out_of_order unknown_attempt wrong_agent wrong_incarnation
        wrong_fence unknown_step not_permitted sequence_conflict
        not_yours not_current cancel_recorded deadline_passed out_of_order no_such_mutation plan_differs permit_open
        busy conflict unknown_target fence_regression host_policy draining
        not_applied applying partial fenced_off host_gone still_running";
    for word in words.split_whitespace() {
        is_useful(explain_state(word).unwrap_or_else(|| panic!("{word} is not explained")), word);
    }
    for word in state_words() {
        assert!(words.split_whitespace().any(|known| known == word), "{word} is no word of the design");
        assert_eq!(state_words().filter(|other| *other == word).count(), 1, "{word} stands twice");
    }
}

#[test]
fn words_are_found_however_they_are_typed_and_others_are_not() {
    assert_eq!(explain_state("Not-Started"), explain_state("not_started"));
    assert_eq!(explain_state(" still running "), explain_state("still_running"));
    for word in ["", "done", "ok", "HF-2031", "queue"] {
        assert_eq!(explain_state(word), None, "{word}");
    }
}
