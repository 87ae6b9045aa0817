export { confirm as GET, confirm as POST } from '@postern/client/auth-js'
