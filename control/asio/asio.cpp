// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What of Asio is no template, compiled here alone (BOOST_ASIO_SEPARATE_COMPILATION): as inline
// functions each file that includes Asio would compile all of it anew.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
