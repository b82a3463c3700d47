// A service for the benchmark of users: hands out tokens, and makes up so many users, page by page, with paging headers.
import { createServer } from 'node:http';
import { listen } from './listen.js';

const count = Number(process.argv[2]);

interface Answer {
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body: object;
}

function user(n: number): object {
  return {
    uid: `user-${n}`,
    full_name: `First${n} Last${n}`,
    email: `user-${n}@mail.example`,
    image_url: `https://images.example/${n}.png`,
    created_at: '2026-01-01T00:00:00Z',
    contributions_count: n % 100,
    badges: n % 10 === 0 ? [{ name: 'first' }] : [],
  };
}

function listed(query: URLSearchParams): Answer {
  const [page, perPage] = [Number(query.get('page')), Number(query.get('per_page') ?? 20)];
  const first = (page - 1) * perPage + 1;
  const last = Math.min(first + perPage - 1, count);
  const data = Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => user(first + n));
  const totalPages = Math.ceil(count / perPage);
  const headers = {
    total: count,
    'total-pages': totalPages,
    'current-page': page,
    'next-page': page < totalPages ? page + 1 : '',
    'page-items': perPage,
  };
  return { headers, body: { success: true, data } };
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://service');
  request.resume().once('end', () => {
    const { headers, body }: Answer =
      pathname === '/oauth/token'
        ? { body: { access_token: 'a-token', token_type: 'Bearer', expires_in: 7200 } }
        : listed(searchParams);
    response.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
  });
});
process.send?.({ url: await listen(server) });
