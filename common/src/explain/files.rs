//! Codes 1001 to 1999: files and inputs.

use crate::explain::Explanation;

const NOTHING: &str =
    "Nothing was recorded and nothing was started: a file is read whole before anything else happens.";

pub(super) const SYNTAX: Explanation = Explanation {
    what: "The file could not be read as TOML or JSON, or it is not UTF-8. A file that begins with { is read as JSON, any other as TOML.",
    still_true: NOTHING,
    next: "Go to the line and column that the error names: the mistake is there or just before. Then run holdfast check FILE.",
};

pub(super) const UNKNOWN_KEY: Explanation = Explanation {
    what: "The file has a key that the schema does not have. Holdfast ignores no key, because a mistyped one would silently change what a deployment does.",
    still_true: NOTHING,
    next: "Correct the key, or take it out. If it belongs to another kind of file, the error says so.",
};

pub(super) const INVALID_VALUE: Explanation = Explanation {
    what: "A value has the wrong type, is out of range, or holds characters that are not allowed there. Control characters are allowed nowhere.",
    still_true: NOTHING,
    next: "The error names the key and what it takes. Put scripts of several lines into a file and run that file.",
};

pub(super) const INVALID_INPUT: Explanation = Explanation {
    what: "An input is missing, is not declared under [inputs], or its value does not fit its declared type.",
    still_true: NOTHING,
    next: "Give each required input with --set NAME=VALUE. The declarations stand under [inputs] at the top of the file.",
};

pub(super) const MISSING_KEY: Explanation = Explanation {
    what: "A key is missing that the schema requires at this place. Holdfast does not guess it.",
    still_true: NOTHING,
    next: "Add the key that the error names, in the table whose line it shows.",
};

pub(super) const TOO_LARGE: Explanation = Explanation {
    what: "A file, a message, a value or a resolved deployment is larger than its limit. The limits keep one request from starving the others.",
    still_true: "Nothing was taken in part: what is too large is refused whole.",
    next: "Make it smaller. Ship large content as an archive on the host, not inside the deployment file.",
};

pub(super) const NOT_SUPPORTED: Explanation = Explanation {
    what: "The file asks for something valid that this version can't honour. It is refused, because ignoring it would make the outcome a lie: a release without the approval that it asked for is not what was asked for. In this version that is approval by people, an order of targets, and a schema that is newer than it.",
    still_true: NOTHING,
    next: "Take the named key out if you can do without what it promises, or use a version that supports it. holdfast version shows yours.",
};

pub(super) const DATA_DESTROYED: Explanation = Explanation {
    what: "A step says data = \"destructive\", and the file declares no tested way to get that data back. Going back would start the previous image, which does not bring the data back: the old program would run on data that it does not know.",
    still_true: NOTHING,
    next: "Split the change where you can: one file that expands, and a later one that contracts when no release needs the old data any more. Else test a recovery first, then declare it: [rollback] data_recovery = \"restore:WHAT WAS TESTED, AND WHEN\", with [[rollback.step]] that does it.",
};
