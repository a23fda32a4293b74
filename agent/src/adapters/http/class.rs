//! What the status of a submission's answer says.
//!
//! | status | says |
//! | --- | --- |
//! | declared as transient | nothing was begun, and another try later may go well |
//! | 2xx | accepted |
//! | 4xx but 408 | refused, which is read back before it is said |
//! | any other, 408, or no answer | nothing: it may have been taken or not |

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Accepted,
    Transient,
    Refused,
    Nothing,
}

pub(super) fn class(status: u16, transient: &[u16]) -> Said {
    match status {
        status if transient.contains(&status) => Said::Transient,
        200..=299 => Said::Accepted,
        // Whoever answers that it waited too long for a request has seen a part of it.
        408 => Said::Nothing,
        400..=499 => Said::Refused,
        _ => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_4xx_refuses_and_only_a_declared_status_is_transient() {
        let said = |status| class(status, &[429, 503]);
        for status in [200, 201, 202, 204] {
            assert_eq!(said(status), Said::Accepted, "{status}");
        }
        for status in [400, 401, 403, 404, 409, 412, 422] {
            assert_eq!(said(status), Said::Refused, "{status}");
        }
        for status in [100, 301, 303, 307, 408, 500, 502, 504] {
            assert_eq!(said(status), Said::Nothing, "{status}");
        }
        assert_eq!((said(429), said(503)), (Said::Transient, Said::Transient));
        assert_eq!((class(429, &[]), class(503, &[])), (Said::Refused, Said::Nothing));
    }
}
