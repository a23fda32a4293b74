use super::answered;
use crate::command::target::READING;
use crate::command::{Context, Outcome};

pub(super) async fn run(deployment: &str, context: &mut Context) -> Outcome {
    let answer = context.client().await?.inspect(deployment, READING).await?;
    answered("InspectDeploymentResponse", &answer, answer.answer.as_ref(), deployment, context)
}
