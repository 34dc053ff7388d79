// The parts of Asio that the server uses, their executor fixed at compile time: no type-erased
// executor is called per read or write.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>

namespace idemd::server {

using IoContext = boost::asio::io_context;
using Executor = IoContext::executor_type;
using WorkGuard = boost::asio::executor_work_guard<Executor>;
using StreamSocket =
    boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, Executor>;
using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;
using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;
using ErrorCode = boost::system::error_code;

}  // namespace idemd::server
