alter table delivery_key add column networks text; -- JSON array of CIDR; null: any address may use the key
