-- holdfast: data=contract
ALTER TABLE purchase DROP COLUMN mail;
