// A service for the benchmark of scale: hands out tokens, and says yes to every erasure and every logout.
import { createServer } from 'node:http';

const token = JSON.stringify({ access_token: 'a-token', token_type: 'Bearer', expires_in: 7200 });
const yes = JSON.stringify({ success: true });

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(request.url.startsWith('/oauth/token') ? token : yes);
  });
});
server.listen(0, '127.0.0.1', () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}` });
});
process.once('disconnect', () => process.exit());
