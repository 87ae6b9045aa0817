import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { StoreUnavailable } from '../../store.ts'
import { CallAtFault, isServerRefusal, toStoreError } from './errors.ts'

function databaseError(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('no', 2, 'error')
  error.code = code
  return error
}

test('a connection goes on after a statement that the server refused, and after nothing else', () => {
  for (const code of ['22P02', '23505', '40001', '40P01', '42P01', '55P03'])
    assert.equal(isServerRefusal(databaseError(code)), true, code)
  assert.equal(isServerRefusal(new CallAtFault('no')), true)
  for (const code of ['57P01', '53300', '08006', 'XX000'])
    assert.equal(isServerRefusal(databaseError(code)), false, code)
  assert.equal(isServerRefusal(new Error('Connection terminated')), false)
})

test('a value or a constraint is the fault of its call; whatever else the server says, the store is unavailable', () => {
  assert.ok(toStoreError(databaseError('22003')) instanceof CallAtFault)
  assert.ok(toStoreError(databaseError('23514')) instanceof CallAtFault)
  const other = toStoreError(databaseError('53300'))
  assert.ok(other instanceof StoreUnavailable)
  assert.match(other.message, /SQLSTATE 53300/)
  assert.ok(toStoreError(new Error('Connection terminated unexpectedly')) instanceof StoreUnavailable)
  assert.ok(!(toStoreError(new TypeError('a bug')) instanceof StoreUnavailable))
})
