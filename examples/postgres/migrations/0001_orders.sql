-- holdfast: data=expand
-- Names without a schema are those of the resource's schema.
CREATE TABLE purchase (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer text NOT NULL,
  mail     text
);
