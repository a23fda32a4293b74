//! Tokens of people, and tokens that an agent joins with.

use holdfast_proto::v1;

use super::{Client, DEADLINE, pages, read, sent, timely};
use crate::failure::Failure;
use crate::refusal::Call;

impl Client {
    /// Makes a token.
    pub async fn create_token(&self, request: v1::CreateTokenRequest) -> Result<v1::CreateTokenResponse, Failure> {
        let mut api = self.api.clone();
        sent(&look_at_tokens(), DEADLINE, async move { api.create_token(timely(request, DEADLINE)).await }).await
    }

    /// All tokens that the caller manages.
    pub async fn tokens(&self) -> Result<v1::ListTokensResponse, Failure> {
        pages::whole(usize::MAX, async |page| {
            let mut api = self.api.clone();
            let request = v1::ListTokensRequest { page_size: page.size, page_token: page.token };
            read(async move { api.list_tokens(timely(request, DEADLINE)).await }).await
        })
        .await
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, name: &str) -> Result<v1::Token, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::RevokeTokenRequest { name: name.to_owned() }, DEADLINE);
        sent(&look_at_tokens(), DEADLINE, async move { api.revoke_token(request).await })
            .await?
            .token
            .ok_or(Failure::incomplete("token"))
    }

    /// Makes a join token.
    pub async fn create_join_token(
        &self,
        request: v1::CreateJoinTokenRequest,
    ) -> Result<v1::CreateJoinTokenResponse, Failure> {
        let mut api = self.api.clone();
        sent(&look_at_join_tokens(), DEADLINE, async move { api.create_join_token(timely(request, DEADLINE)).await })
            .await
    }

    /// All join tokens.
    pub async fn join_tokens(&self) -> Result<v1::ListJoinTokensResponse, Failure> {
        pages::whole(usize::MAX, async |page| {
            let mut api = self.api.clone();
            let request = v1::ListJoinTokensRequest { page_size: page.size, page_token: page.token };
            read(async move { api.list_join_tokens(timely(request, DEADLINE)).await }).await
        })
        .await
    }

    /// Takes a join token back.
    pub async fn revoke_join_token(&self, id: &str) -> Result<v1::JoinToken, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::RevokeJoinTokenRequest { id: id.to_owned() }, DEADLINE);
        let answer = async move { api.revoke_join_token(request).await };
        sent(&look_at_join_tokens(), DEADLINE, answer).await?.token.ok_or(Failure::incomplete("token"))
    }
}

fn look_at_tokens() -> Call {
    Call::Changes { look: "holdfast token list".to_owned() }
}

fn look_at_join_tokens() -> Call {
    Call::Changes { look: "holdfast agent token list".to_owned() }
}
