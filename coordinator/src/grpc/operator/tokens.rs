//! Tokens: made, listed, taken back. Whoever manages tokens does so within what they hold themselves.

use holdfast_common::code::Code;
use holdfast_common::id::OperatorName;
use holdfast_common::problem::Problem;
use holdfast_proto::convert::{Invalid, duration_from_wire, parsed, wall_to_wire};
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, page};
use crate::auth::{Grant, Operator, Scope, Standing, Token};
use crate::grpc::shared::Shared;
use crate::grpc::view::enums;
use crate::grpc::{refused, status};
use crate::store::TokenRow;
use crate::tokens;

pub(super) async fn create(call: Call<'_, v1::CreateTokenRequest>) -> Result<v1::CreateTokenResponse, Status> {
    let Call { shared, by, asked } = call;
    let invalid = |why| status::invalid(&why);
    let name: OperatorName = parsed("name", &asked.name).map_err(invalid)?;
    let grants: Vec<Grant> = asked.grants.iter().map(grant).collect::<Result<_, _>>()?;
    let life = asked.life.ok_or(Invalid::Missing { field: "life" }).map_err(invalid)?;
    let life = duration_from_wire("life", life).map_err(invalid)?;
    if let Some(wide) = grants.iter().find(|grant| !by.scope.manages(grant)) {
        return Err(too_wide(shared, &by, &name, wide));
    }
    let (secret, row) = tokens::draw(&name, &grants, life, shared.now(), Some(&by.name)).map_err(|why| drawn(&why))?;
    let token = read(&row)?;
    if !shared.driver.make_token(row).await.map_err(|error| refused::about_tokens(&error))? {
        return Err(status::of(&taken(&name)));
    }
    tracing::info!(by = %by.name, token = %name, scope = %token.scope, "a token was made");
    Ok(v1::CreateTokenResponse { token: Some(shown(shared, &token)), secret: secret.reveal().to_owned() })
}

pub(super) async fn list(call: Call<'_, v1::ListTokensRequest>) -> Result<v1::ListTokensResponse, Status> {
    let Call { shared, by, asked } = call;
    let after: Option<OperatorName> = page::token(&asked.page_token)?;
    let all = all(shared).await?;
    let own: Vec<Token> = all.iter().map(read).filter(|token| is_theirs(&by, token)).collect::<Result<_, _>>()?;
    let (page, next_page_token) =
        page::cut(own, after.as_ref().map(OperatorName::as_str), page::size(asked.page_size), |token| {
            token.name.as_str()
        });
    Ok(v1::ListTokensResponse { tokens: page.iter().map(|token| shown(shared, token)).collect(), next_page_token })
}

/// A token that can't be read is shown to nobody, and told.
fn is_theirs(by: &Operator, token: &Result<Token, Status>) -> bool {
    token.as_ref().map_or(true, |token| manages(&by.scope, &token.scope))
}

pub(super) async fn revoke(call: Call<'_, v1::RevokeTokenRequest>) -> Result<v1::RevokeTokenResponse, Status> {
    let Call { shared, by, asked } = call;
    let name: OperatorName = parsed("name", &asked.name).map_err(|why| status::invalid(&why))?;
    let row = all(shared).await?.into_iter().find(|row| row.name == name).ok_or_else(|| no_such_token(&name))?;
    if !manages(&by.scope, &read(&row)?.scope) {
        shared.driver.refused(
            by.name.to_string(),
            format!("revoke the token of {name}"),
            "it reaches further".to_owned(),
        );
        return Err(no_such_token(&name));
    }
    if !shared.driver.revoke_token(row.clone(), by.name.clone()).await.map_err(|error| refused::about_tokens(&error))? {
        return Err(no_such_token(&name));
    }
    tracing::info!(by = %by.name, token = %name, "a token was taken back");
    Ok(v1::RevokeTokenResponse { token: Some(shown(shared, &read(&tokens::revoked(row))?)) })
}

fn manages(scope: &Scope, other: &Scope) -> bool {
    other.grants().iter().all(|grant| scope.manages(grant))
}

fn grant(wire: &v1::Grant) -> Result<Grant, Status> {
    let kind = Invalid::Enum { field: "grants.role", kind: "Role", number: wire.role };
    let role = enums::role_from_wire(wire.role).ok_or_else(|| status::invalid(&kind))?;
    let targets = wire.targets.parse().map_err(|error| {
        status::of(
            &Problem::new(Code::InvalidMessage, format!("field `grants.targets`: {error}")).so("nothing was changed"),
        )
    });
    Ok(Grant { role, targets: targets? })
}

async fn all(shared: &Shared) -> Result<Vec<TokenRow>, Status> {
    shared.reader.run(|reader| reader.tokens()).await.map_err(|error| refused::by_store(&error))
}

fn read(row: &TokenRow) -> Result<Token, Status> {
    tokens::token(row).map_err(|error| {
        tracing::error!(error, "could not read a token");
        status::plain(Code::StoreFailed, Code::StoreFailed.title())
    })
}

fn shown(shared: &Shared, token: &Token) -> v1::Token {
    let standing = match token.standing(shared.now()) {
        Standing::Valid => v1::TokenStanding::Valid,
        Standing::Expired => v1::TokenStanding::Expired,
        Standing::Revoked => v1::TokenStanding::Revoked,
    };
    v1::Token {
        name: token.name.to_string(),
        grants: grants(&token.scope),
        expires_at: (!token.revoked).then(|| wall_to_wire(token.expires_at)),
        standing: standing as i32,
        created_at: token.created_at.map(wall_to_wire),
        created_by: token.created_by.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

/// As the wire has them.
pub(super) fn grants(scope: &Scope) -> Vec<v1::Grant> {
    let grant =
        |grant: &Grant| v1::Grant { role: enums::role(grant.role) as i32, targets: grant.targets.as_str().to_owned() };
    scope.grants().iter().map(grant).collect()
}

fn too_wide(shared: &Shared, by: &Operator, name: &OperatorName, wide: &Grant) -> Status {
    let title = format!("{} can't give {wide}: nobody can give more than they hold", by.name);
    shared.driver.refused(by.name.to_string(), format!("create the token {name}"), title.clone());
    let problem = Problem::new(Code::GrantTooWide, title)
        .known(format!("the token's grants are {}", by.scope))
        .so("no token was made")
        .next("holdfast whoami");
    status::of(&problem)
}

fn taken(name: &OperatorName) -> Problem {
    Problem::new(Code::TokenExists, format!("a valid token of the name {name} exists"))
        .so("no token was made")
        .next(format!("take another name, or first: holdfast token revoke {name}"))
}

fn drawn(why: &tokens::Error) -> Status {
    let code = match why {
        tokens::Error::Life | tokens::Error::Grants => Code::InvalidMessage,
        tokens::Error::NoStore { .. }
        | tokens::Error::Store(_)
        | tokens::Error::NoRandomness(_)
        | tokens::Error::Exists(_)
        | tokens::Error::NotFound(_)
        | tokens::Error::Row(_) => Code::Internal,
    };
    status::of(&Problem::new(code, why.to_string()).so("no token was made"))
}

fn no_such_token(name: &OperatorName) -> Status {
    let problem = Problem::new(Code::TokenNotFound, format!("no such token: {name}"));
    status::of(&problem.so("nothing was changed").next("holdfast token list"))
}
