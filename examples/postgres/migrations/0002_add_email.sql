-- holdfast: data=expand
-- Several statements are one transaction, with the row of the ledger.
ALTER TABLE purchase ADD COLUMN email text;
UPDATE purchase SET email = mail;
