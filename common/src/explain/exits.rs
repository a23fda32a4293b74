//! What a command's exit code says. A new code has its text or does not compile.

use crate::code::ExitCode;
use crate::explain::Explanation;

const GOES_ON: &str = "A command's end changes nothing: deployments go on without whoever watches them.";
const NOTHING: &str = "Nothing was changed by this command.";

pub(super) fn exit(code: ExitCode) -> Explanation {
    let (what, still_true, next) = match code {
        ExitCode::Done => ("Done, and true when it was said.", GOES_ON, "Nothing."),
        ExitCode::Unexpected => (
            "Something unexpected: a fault of Holdfast or of the machine that it runs on. Also what a verification ends with that found a difference, and a tour that found something untrue.",
            "What was recorded before stays recorded.",
            "Read the error's own text. Look with holdfast show before you repeat anything.",
        ),
        ExitCode::Usage => (
            "The command line, a value in it, or a file is wrong.",
            NOTHING,
            "Correct it: the error names the place. --help shows what is understood.",
        ),
        ExitCode::NotFound => (
            "There is no such thing, or none that you may see.",
            NOTHING,
            "holdfast list and holdfast targets show what you may see.",
        ),
        ExitCode::NotAllowed => (
            "You are not signed in, or none of your grants includes this.",
            NOTHING,
            "holdfast whoami shows who you are and what you hold. holdfast login signs in.",
        ),
        ExitCode::NoAnswer => (
            "Nobody answered. The request may have been taken.",
            "Whatever ran goes on.",
            "Repeat a submission under the request id that was printed: nothing happens twice. Look before you repeat anything else.",
        ),
        ExitCode::Failed => (
            "The deployment failed, and that was observed. It is never said for silence.",
            "The target is free. The text beside it says whether a part may be applied.",
            "holdfast logs D, then correct the cause and deploy again, or go back: holdfast rollback TARGET.",
        ),
        ExitCode::Cancelled => (
            "The deployment was cancelled, and that it ended was observed.",
            "What was applied before stays applied. The target is free.",
            "holdfast show D lists what had been applied.",
        ),
        ExitCode::NeedsDecision => (
            "The deployment is uncertain or held: somebody must find out and decide.",
            "The target stays reserved for it.",
            "holdfast reconcile show D.",
        ),
        ExitCode::CancelTooLate => (
            "The cancel came too late: the deployment succeeded.",
            "Its success stands, and the target is free.",
            "holdfast rollback TARGET lists where the target can go back to. Or deploy the revision that you want instead.",
        ),
        ExitCode::ClientTimeout => (
            "The command's own --timeout passed.",
            "Nothing was stopped: the deployment goes on.",
            "holdfast watch D comes back to it.",
        ),
        ExitCode::TargetHeld => (
            "Another deployment holds the target, or an operator has put it on hold. A deployment meets it with --no-queue; whatever can't wait in line, like target attest or a change of the target, meets it always.",
            "Nothing was recorded.",
            "holdfast target show TARGET tells who holds it and who can act. A deployment waits in line without --no-queue; anything else is repeated once the target is free.",
        ),
        ExitCode::Precondition => (
            "A precondition refused it: a revision, a fence, a policy, missing proof, or something that this version can't do.",
            NOTHING,
            "The error's code tells which: holdfast explain CODE.",
        ),
        ExitCode::WaitingForApproval => (
            "Kept for deployments that wait for approval, which come with a later version. No command of this version exits with it.",
            "This version refuses a file that asks for approval, with HF-1601 and exit code 16.",
            "Nothing.",
        ),
        ExitCode::Interrupted => (
            "Left by Ctrl-C.",
            "Leaving is not cancelling: the deployment goes on.",
            "holdfast watch D comes back. holdfast cancel D --reason TEXT asks for a stop.",
        ),
    };
    Explanation { what, still_true, next }
}
