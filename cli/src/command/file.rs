//! Files that the operator names.

use std::io::Read;

use holdfast_common::code::Code;
use holdfast_common::file::{self, MAX_FILE};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;

use super::Context;
use crate::failure::Failure;

/// The bytes of a file, or of the input where its name is `-`, at most `max` and one more.
pub(super) fn bytes(name: &str, max: usize, context: &mut Context) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let read = match name {
        "-" => context.surroundings.input.by_ref().take(limit).read_to_end(&mut bytes),
        name => std::fs::File::open(name).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Problem::new(Code::FileSyntax, format!("could not read {}: {error}", one_line(name)))
            .so("nothing was sent")
            .into()),
    }
}

/// The text of a file. Refused here where no coordinator would take it.
pub(super) fn text(name: &str, context: &mut Context) -> Result<String, Failure> {
    let bytes = bytes(name, MAX_FILE, context)?;
    file::text(&bytes).map(str::to_owned).map_err(|errors| Failure::of_file(&errors, name))
}

/// Puts the file's own name where the coordinator, which was sent only its text, says `FILE`.
pub(super) fn named(failure: Failure, name: &str) -> Failure {
    let Failure::Refused { problems, exit } = failure else { return failure };
    let problems = problems.into_iter().map(|problem| {
        if problem.metadata.get("file").is_none_or(|file| file != "FILE") {
            return problem;
        }
        let name = one_line(name);
        let line = |line: String| match line.strip_prefix("FILE:") {
            Some(place) => format!("{name}:{place}"),
            None => line.replace("holdfast check FILE", &format!("holdfast check {name}")),
        };
        Problem {
            known: problem.known.into_iter().map(line).collect(),
            next: problem.next.into_iter().map(line).collect(),
            ..problem
        }
        .with("file", &name)
    });
    Failure::Refused { problems: problems.collect(), exit }
}

#[cfg(test)]
mod tests {
    use holdfast_common::file::DeploymentFile;

    use super::*;

    #[test]
    fn the_coordinators_faults_are_told_with_the_files_name() {
        let errors = DeploymentFile::parse("schema = \"holdfast/v1\"\ntargt = \"x\"\n").expect_err("a fault");
        let remote = errors.iter().next().expect("one").problem("FILE");
        let Failure::Refused { problems, .. } = named(remote.clone().into(), "shop.toml") else { panic!("refused") };
        let local = errors.iter().next().expect("one").problem("shop.toml");
        assert_eq!(problems, [local]);
    }

    #[test]
    fn other_refusals_are_left_as_they_are() {
        let problem = Problem::new(Code::TargetNotFound, "no such target: FILE").next("holdfast target apply FILE");
        let Failure::Refused { problems, .. } = named(problem.clone().into(), "shop.toml") else { panic!("refused") };
        assert_eq!(problems, [problem]);
    }
}
