/** The uid belonged to a deleted user. Deletion is final (section 1), so it is refused forever. */
export class DeletedUidError extends Error {
  override readonly name = 'DeletedUidError';
  readonly code = 'DELETED_UID';

  constructor(readonly uid: string) {
    super(`The user with uid ${JSON.stringify(uid)} was deleted; deletion is final. Use another uid.`);
  }
}

/** The uid belongs to a registered user already. */
export class DuplicateUidError extends Error {
  override readonly name = 'DuplicateUidError';
  readonly code = 'DUPLICATE_UID';

  constructor(readonly uid: string) {
    super(`A user with uid ${JSON.stringify(uid)} is registered already. Use get() to read it.`);
  }
}
