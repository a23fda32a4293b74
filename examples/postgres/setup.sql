-- What a database administrator does once, as the owner of the database. Choose passwords of your own.
CREATE ROLE orders_deploy LOGIN PASSWORD 'change me: deploy';
CREATE ROLE orders_inspect LOGIN PASSWORD 'change me: inspect';
CREATE ROLE orders_fence LOGIN PASSWORD 'change me: fence';
