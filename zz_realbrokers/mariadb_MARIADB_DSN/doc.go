// Package mariadb shows whether the tests on a real MariaDB ran: see zz_realbrokers.
package mariadb
