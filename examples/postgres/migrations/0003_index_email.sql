-- holdfast: data=none transaction=none
CREATE INDEX CONCURRENTLY purchase_email ON purchase (email);
