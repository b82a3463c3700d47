import type { Request } from 'express';

/** Paths only: with the origin of another site in it, the login form would lead there. */
const BASE = 'http://this.app';

/** The path of this app that a visitor wanted to open before the login; undefined for the start page. */
export function placeAfterLogin({ query, body }: Request): string | undefined {
  const { to } = { ...query, ...(Object(body) as object) } as { to?: unknown };
  if (typeof to !== 'string' || !URL.canParse(to, BASE)) return undefined;
  const { origin, pathname, search } = new URL(to, BASE);
  if (origin !== BASE || pathname.startsWith('//') || pathname === '/' || pathname === '/login')
    return undefined;
  return `${pathname}${search}`;
}

/** The login page, which leads back to the page of this request. */
export function loginFor({ originalUrl }: Request): string {
  return originalUrl === '/' ? '/login' : `/login?${new URLSearchParams({ to: originalUrl }).toString()}`;
}
