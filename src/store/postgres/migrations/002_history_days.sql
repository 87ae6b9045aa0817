-- `history` is partitioned by the time in its ids, so that retention drops a day instead of deleting its rows.
-- The table so far becomes `history_rest`, without bounds: nothing is copied. `queue/history-partitions.ts` adds
-- days.
-- Mail waits while this waits for a transaction that reads the table.
set local lock_timeout = '1s';
alter table history rename to history_rest;
alter index history_pkey rename to history_rest_pkey;
alter index history_recipient rename to history_rest_recipient;
alter index history_app rename to history_rest_app;
alter index history_trouble rename to history_rest_trouble;
alter index history_app_trouble rename to history_rest_app_trouble;

create table history (like history_rest) partition by range (email_id);
alter table history add primary key (email_id, app_id);
create index history_recipient on history (recipient, email_id);
create index history_app on history (app_id, email_id);
create index history_trouble on history (state, email_id) where state <> 'delivered';
create index history_app_trouble on history (app_id, state, email_id) where state <> 'delivered';
alter table history attach partition history_rest for values from (minvalue) to (maxvalue);
