/**
 * Where the page of an erasure is, or a part of it such as `events`. The reference goes into the query: browsers resolve
 * `.` and `..` in paths, also when they are escaped.
 */
export function erasurePath(reference: string, part?: string): string {
  const path = part === undefined ? '/admin/erasure' : `/admin/erasure/${part}`;
  return `${path}?${new URLSearchParams({ reference }).toString()}`;
}
