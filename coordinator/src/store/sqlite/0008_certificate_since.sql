-- When the certificate that an agent showed last began.
ALTER TABLE agents ADD COLUMN certificate_since INTEGER;
