use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::{answered, asked};
use crate::command::{Context, Outcome};

pub(super) async fn run(deployment: &str, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let v1::InspectDeploymentResponse { inquiry, .. } = client.inspect(deployment, Millis(0)).await?;
    let found = asked::answer(&client, deployment, &inquiry, context).await?;
    let answer = v1::InspectDeploymentResponse { inquiry, answer: found };
    answered("InspectDeploymentResponse", &answer, answer.answer.as_ref(), deployment, context)
}
